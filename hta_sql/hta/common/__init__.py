"""HTA's module paths: ``hta.common.x`` is ``hta_sql.hta.common.x``; every number comes from SQL."""
