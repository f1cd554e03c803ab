"""Logging with `self.log`."""
