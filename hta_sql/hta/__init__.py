"""What TraceAnalysis is made of: one module per topic of HTA's methods, over the same job."""
