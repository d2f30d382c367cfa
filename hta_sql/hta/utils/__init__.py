"""HTA's module paths: ``hta.utils.x`` is ``hta_sql.hta.utils.x``."""
