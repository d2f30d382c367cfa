"""Serve stores: the explorer, MCP, and a single trace for Perfetto's page."""
