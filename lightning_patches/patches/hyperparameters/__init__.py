"""save_hyperparameters, and what loggers make of it."""
