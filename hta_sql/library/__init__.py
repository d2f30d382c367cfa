"""The SQL library as objects: what each .sql file takes, returns and means."""
