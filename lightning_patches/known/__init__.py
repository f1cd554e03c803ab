"""Facts about Lightning's bugs: the affected releases, the patches that fix them, and upstream's fixes.

The commands, the generated pages and the scripts use these modules. The engine imports only :mod:`unpatched` and
:mod:`removed`, which import only :mod:`lightning_patches.patch`.
"""
