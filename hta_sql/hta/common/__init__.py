"""Mirror HTA's module path: ``hta.common.x`` is ``hta_sql.hta.common.x``.

All numbers are computed in SQL.
"""
