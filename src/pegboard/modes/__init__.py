"""How a client sees the catalogue: one module a mode, with its meta-tools."""
