"""Loops: epochs, validation, resuming."""
