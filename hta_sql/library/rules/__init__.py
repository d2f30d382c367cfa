"""Lint rules for .sql files of a library: documentation, statement, agreement with the engine.

A rule is a function that returns the problems of one file:

    text rules     text.py, units.py             header, documentation, parameters, units, names
    references     references.py, statement.py   tables and functions used, by the engine's parser
    products       products.py                   products of times that overflow, by the engine's parser
    engine rules   engine.py                     names and types, from the engine itself

``hta-sql check DIR`` checks user analyses. ``make check`` checks the shipped ones, for which
tests/sql_rules has additional rules.
"""
