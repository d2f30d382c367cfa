"""Serve a store in the explorer or over MCP, or a single trace to Perfetto's page."""
