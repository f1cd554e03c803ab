"""A program without Lightning. It prints its environment as JSON, and exits with the given status."""

import json
import os
import sys

print(
    json.dumps(
        {
            "argv": sys.argv[1:],
            "armed": any(type(finder).__name__ == "_Finder" for finder in sys.meta_path),
            "loaded": "lightning_patches" in sys.modules,
            "modules": sorted(sys.modules),
            "prefix": sys.prefix,
            "path": sys.path,
            "neighbours": getattr(sys, "neighbours", 0),
            "sitecustomize": getattr(sys.modules.get("sitecustomize"), "__file__", None),
            "variables": {name: os.environ.get(name) for name in ("LIGHTNING_PATCHES", "PYTHONPATH")},
        }
    ),
    flush=True,
)
sys.exit(int(os.environ.get("STATUS", "0")))
