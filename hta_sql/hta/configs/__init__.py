"""HTA's module paths: ``hta.configs.x`` is ``hta_sql.hta.configs.x``."""
