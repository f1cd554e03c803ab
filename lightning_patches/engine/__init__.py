"""Decides what a patch has to do in the Lightning that is installed, and does it."""
