"""OAuth towards servers: logging in, storing what a login gives, and using it on requests.

    login_options   `[servers.x.oauth]`
    http_requests   bounded requests to authorization servers
    discovery       which authorization server protects a server, from its refusal
    clients         how Pegboard identifies itself there, and requests tokens
    login_flow      one login of one person
    logins          the logins in progress, and the tokens of all servers
    loopback        receives the redirect of a browser on this machine
    machine_grants  tokens without a person: client credentials, token exchange, ID-JAG
    grants          what a login leaves behind
    grant_storage   where that is stored: a file each, the shared store, or memory
    encryption      with a key from the configuration or the keyring
    access_tokens   the current token of each principal, refreshed once for all processes

The SDK has the models, the addresses of metadata and the rules for issuers and resources. Order,
storage and refresh are ours; `docs/decisions/logins.md` has the reasons.
"""
