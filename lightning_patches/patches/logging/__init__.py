"""self.log: precision, device, reduction, and its cost."""
