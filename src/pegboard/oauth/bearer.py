"""`Bearer`: puts the current token of a principal on requests to a server.

The principal of a request to a connection that several share travels in a header of ours, which is
removed here and never sent. It is a header and not an attribute of the request because the SDK
passes only headers on.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator
from typing import Final

import httpx2

from pegboard.oauth.tokens import ServerTokens

PRINCIPAL_HEADER: Final = "pegboard-principal"


class Bearer(httpx2.Auth):
    """Authorizes requests as the principal that they name, or else as the connection's own.

    It holds no lock while a request runs, and never raises: without a token the request is sent as
    it is, and the server's refusal says which login it needs.
    """

    def __init__(self, tokens: ServerTokens, principal: str) -> None:
        self._tokens = tokens
        self._principal = principal

    async def async_auth_flow(
        self, request: httpx2.Request
    ) -> AsyncGenerator[httpx2.Request, httpx2.Response]:
        principal = request.headers.pop(PRINCIPAL_HEADER, self._principal)
        tokens = self._tokens
        token = tokens.peek(principal) or await tokens.get(principal)
        if token is not None:
            request.headers["Authorization"] = f"Bearer {token}"
        response = yield request
        if response.status_code != 401:
            return
        fresh = await tokens.renew(principal, token)
        if fresh is None or fresh == token:
            return
        request.headers["Authorization"] = f"Bearer {fresh}"
        response = yield request
        if response.status_code == 401:
            tokens.refuse(principal, fresh)
