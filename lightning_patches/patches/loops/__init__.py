"""Epochs, validations within them, and where a resumed run goes on."""
