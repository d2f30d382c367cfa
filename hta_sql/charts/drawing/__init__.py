"""Shared parts of figures: colors, bars, matrices, series, axes and labels."""
