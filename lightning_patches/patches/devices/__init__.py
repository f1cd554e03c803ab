"""Which device is used, and when it is first touched."""
