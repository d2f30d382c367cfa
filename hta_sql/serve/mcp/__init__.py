"""Serve a store to agents over the Model Context Protocol.

Answers have a bounded number of rows, plain JSON, and suggestions of what to run next.
"""
