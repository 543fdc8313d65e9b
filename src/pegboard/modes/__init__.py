"""How a client sees the catalog: one module per mode, with its meta-tools."""
