"""The SQL library as Python objects: parameters, columns and documentation of each .sql file."""
