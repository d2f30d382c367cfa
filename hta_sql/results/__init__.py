"""Results of analyses and queries: display, formatting and file writers."""
