"""Servers over stores: the explorer, MCP, and one trace for Perfetto's page."""
