"""The ways in: the import, the launcher's ``sitecustomize``, the ``autostart`` line, and the canary in each rank."""
