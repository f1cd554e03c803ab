"""LightningCLI and command line arguments."""
