"""Loaders, samplers, workers, and who prepares the data."""
