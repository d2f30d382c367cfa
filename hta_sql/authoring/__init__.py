"""Write your own analyses: validate a folder, run its golden tests, create a first analysis."""
