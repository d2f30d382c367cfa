"""Mirror HTA's module path: ``hta.utils.x`` is ``hta_sql.hta.utils.x``."""
