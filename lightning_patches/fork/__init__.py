"""Build the patched fork of a release: the official wheel with our diffs, for use without an import hook."""
