"""Learning rate finder and batch size finder."""
