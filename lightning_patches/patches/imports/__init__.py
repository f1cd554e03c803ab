"""Importing Lightning."""
