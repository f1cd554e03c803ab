"""Hyperparameters."""
