"""OpenAPI 3 documents as sources of tools: operations become tools, calls become HTTP requests.

    spec -> document -> operations -> tools      (source.py: `OpenApiSource`)
    arguments -> request -> response -> result

Only references inside the document are followed. Imported where it lives, since it brings the HTTP
client.
"""
