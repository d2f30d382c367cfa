"""What figures share: colours, bars, matrices, series, axes and texts."""
