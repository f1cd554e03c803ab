"""Several ranks: who keeps the others waiting, whose turn it is, and whether they still agree."""
