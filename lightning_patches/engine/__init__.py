"""Decides which patches the installed Lightning needs, and applies them."""
