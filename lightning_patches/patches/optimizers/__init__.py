"""Optimizers, schedulers, closures and accumulation."""
