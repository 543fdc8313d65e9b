"""Embeddings: the models that ship with the package, and the vectors and indexes saved on disk.

    live_index  ──>  vectorizer  ──>  bundled_models  ──>  encoder
        └────────────────┴─────────>  disk_storage

A board imports this package with its first search, since numpy is slow to import.
"""
