"""Mirror HTA's module path: ``hta.configs.x`` is ``hta_sql.hta.configs.x``."""
