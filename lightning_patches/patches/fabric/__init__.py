"""What Fabric wraps around modules and optimizers."""
