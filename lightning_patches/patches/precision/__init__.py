"""Mixed precision, dtypes, and clipping under them."""
