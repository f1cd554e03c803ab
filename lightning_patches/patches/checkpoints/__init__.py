"""What is written to checkpoints, which of them are kept, and how they are loaded."""
