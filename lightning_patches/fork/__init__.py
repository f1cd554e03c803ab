"""The patched fork of a release: the official wheel with our diffs in it, for those who want no hook."""

from pathlib import Path

_PACKAGE = Path(__file__).resolve().parents[1]
DIFFS = _PACKAGE.parent / "upstream" / "diffs"
"""Our diffs: ``upstream/diffs`` in a checkout; a wheel has them in the package."""
if not ((_PACKAGE.parent / "setup.cfg").is_file() and DIFFS.is_dir()):
    DIFFS = _PACKAGE / "diffs"
