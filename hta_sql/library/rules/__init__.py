"""What a .sql file of a library has to keep: its words, its statement, its agreement with the engine.

A rule is a function from one file to problems:

    text rules     text.py, units.py             header, words, parameters, units, names
    references     references.py, statement.py   what its statement refers to, by the engine's parser
    engine rules   engine.py                     names and types, from the engine itself

``hta-sql check DIR`` holds a team's own analyses to them, ``make check`` the shipped ones, together
with the rules that only these have (tests/sql_rules).
"""
