"""Sources of tools other than MCP servers: Python functions, catalog files, OpenAPI documents."""
