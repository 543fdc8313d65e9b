"""How a client sees the catalogue: one module a face, each a list of tools and its own meta-tools."""
