"""HTA's module paths: ``hta.analyzers.x`` is ``hta_sql.hta.analyzers.x``."""
