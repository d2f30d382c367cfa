"""Writing analyses of one's own: a folder held to the rules, its golden tests, a first pair of files."""
