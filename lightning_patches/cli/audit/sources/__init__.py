"""Readers of the files in which projects say what they require, one for each kind of file.

A reader gets a :class:`~lightning_patches.cli.audit.sources.items.Source` and yields items. It opens no other file: for
a file that the source names, it yields an ``Include``.
"""
