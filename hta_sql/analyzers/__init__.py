"""HTA's module paths: ``hta.analyzers.x`` is ``hta_sql.analyzers.x``."""
