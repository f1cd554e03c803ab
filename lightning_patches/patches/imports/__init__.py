"""What stands in the way of importing Lightning."""
