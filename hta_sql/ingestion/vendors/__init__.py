"""Profilers other than Kineto: MindSpore Insight's cluster data and the Ascend profiler."""
