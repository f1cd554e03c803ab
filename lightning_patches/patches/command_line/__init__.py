"""LightningCLI, and what Fabric takes from the command line."""
