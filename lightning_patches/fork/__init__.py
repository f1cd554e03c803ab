"""The patched fork of a release: the official wheel with our diffs in it, for those who want no hook."""
