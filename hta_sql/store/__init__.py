"""A store: which files count, its catalog, and the connection that reads it."""
