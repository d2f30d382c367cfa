"""Mirror HTA's module path: ``hta.analyzers.x`` is ``hta_sql.hta.analyzers.x``."""
