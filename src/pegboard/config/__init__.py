"""Configuration: clients' own server files and `pegboard.toml`, read once into frozen values.

    load_configuration(path, environment) -> Configuration(settings, upstreams, sources, ...)

    loader            one file and its imports     -->  Configuration
    server_entries    the entry of one server      -->  UpstreamSpec
    client_formats    the format of each client
    documents         JSON, TOML and YAML that know the lines of their keys
    variables         `${VAR}` and other references
    schema            validation by pydantic, and the published JSON Schemas
    settings          every setting of `pegboard.toml`

Untrusted values are validated where they enter; behind that there are only frozen records.
"""
