"""OAuth towards servers: logging in, storing what a login gives, and using it on requests.

    options         `[servers.x.oauth]`
    challenge       what a server says when it refuses a request
    discovery       which authorization server protects a server, and what it supports
    clients         how Pegboard identifies itself there
    token_endpoint  requests for tokens, and their revocation
    login           one login of one person
    loopback        receives the redirect of a browser on this machine
    machine_grants  tokens without a person: client credentials, token exchange, ID-JAG
    grants          what a login leaves behind
    grant_storage   where that is stored: a file each, or the shared store
    tokens          the current token of each principal, refreshed once for all processes
    bearer          puts it on requests

The SDK has the models, the addresses of metadata and the rules for issuers and resources. Order,
storage and refresh are ours; `docs/decisions/oauth.md` has the reasons.
"""
