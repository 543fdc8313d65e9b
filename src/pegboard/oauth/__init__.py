"""OAuth for servers: logging in, storing the tokens, and sending them with requests.

    login_options   `[servers.x.oauth]`
    http_requests   bounded requests to authorization servers
    discovery       which authorization server protects a server, from its refusal
    clients         how Pegboard identifies itself there, and requests tokens
    login_flow      one login of one person
    logins          the logins in progress, and the tokens of all servers
    loopback        receives the redirect of a browser on this machine
    machine_grants  tokens that need no browser: client credentials, token exchange, ID-JAG
    grants          the result of a login: tokens, client and endpoints
    grant_storage   where that is stored: a file each, the shared store, or memory
    encryption      with a key from the configuration or the keyring
    access_tokens   the current token of each principal, refreshed once for all processes

The SDK has the models, the URLs of metadata and the rules for issuers and resources. The flow,
storage and refresh are our own code; `docs/decisions/logins.md` has the reasons.
"""
