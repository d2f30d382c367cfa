"""Implement the methods of HTA's TraceAnalysis."""
