"""HTA's module paths: ``hta.common.x`` is ``hta_sql.common.x``; every number comes from SQL."""
