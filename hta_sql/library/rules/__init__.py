"""Lint rules for .sql files of a library: documentation, statement, agreement with the engine.

A rule is a function that returns the problems of one file:

    text rules     text.py, units.py             header, documentation, parameters, units, names
    references     references.py, statement.py   references of its statement, by the engine's parser
    engine rules   engine.py                     names and types, from the engine itself

``hta-sql check DIR`` checks user analyses, and ``make check`` the shipped ones, which have
additional rules (tests/sql_rules).
"""
