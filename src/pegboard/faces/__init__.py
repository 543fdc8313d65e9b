"""How a client sees the catalogue: one module a face, with its meta-tools."""
