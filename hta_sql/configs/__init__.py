"""HTA's module paths: ``hta.configs.x`` is ``hta_sql.configs.x``."""
