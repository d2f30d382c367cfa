"""What an analysis returned, and how it is shown and written."""
