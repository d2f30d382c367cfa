"""Implement TraceAnalysis: one module per topic of HTA's methods, all based on :class:`Job`."""
