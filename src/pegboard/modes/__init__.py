"""How a client sees the catalog: one module a mode, with its meta-tools."""
