"""The learning rate finder and the batch size finder."""
