"""Copies of stores and traces without what is the user's own: names, paths, hosts, annotations."""
