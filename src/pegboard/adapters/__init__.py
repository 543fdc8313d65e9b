"""Other people's shapes of tools, made ours: Python functions, servers, OpenAPI documents."""
