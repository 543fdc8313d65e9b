"""Meaning as vectors: the models that ship with the package, and the vectors kept on disk."""
