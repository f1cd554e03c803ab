"""``python -m lightning_patches``"""

from __future__ import annotations

from lightning_patches.cli import main

if __name__ == "__main__":
    raise SystemExit(main())
