"""What figures share: colors, bars, matrices, series, axes and texts."""
