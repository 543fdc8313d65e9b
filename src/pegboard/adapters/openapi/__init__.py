"""OpenAPI 3 documents as sources of tools: operations become tools, calls become HTTP requests.

    spec -> document -> operations -> tools      (openapi_source.py: `OpenApiSource`)
    arguments -> request -> response -> result   (http_messages.py)

Only references inside the document are followed. Not imported with the package, since it brings
the HTTP client.
"""
