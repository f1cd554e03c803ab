"""One file per subject, named as upstream names it. Each defines ``PATCHES``."""
