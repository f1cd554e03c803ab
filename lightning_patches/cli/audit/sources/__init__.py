"""Readers of files with requirements, one for each kind of file.

A reader gets a :class:`~lightning_patches.cli.audit.sources.items.Source` and yields items. It does not open other
files: for a file that the source includes, it yields an ``Include``.
"""
