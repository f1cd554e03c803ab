"""The ways in: the import, the launcher's ``sitecustomize``, the ``autostart`` line, and Lightning's entry points."""
