"""An MCP server and its authorization server in one, which answer whatever a test tells them to.

    with hostile_server() as server:
        server.answers["/token"] = {"access_token": "a\\nb", "token_type": "Bearer"}

Without such an answer it behaves: it is discovered, registers clients, consents at once and issues
tokens, which its `/mcp` accepts.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Generator
from contextlib import contextmanager
from typing import Any, TypeAlias
from urllib.parse import parse_qs, urlencode

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, RedirectResponse, Response
from starlette.routing import Route
from tests.conformance.clients import served
from tests.e2e.test_serving import free_port

SERVER_METADATA = "/.well-known/oauth-authorization-server"
RESOURCE_METADATA = "/.well-known/oauth-protected-resource/mcp"
Answer: TypeAlias = dict[str, Any] | list[Any] | Response | Callable[[Request], Awaitable[Response]]


class HostileServer:
    """What it answers by path, and the requests that it got."""

    def __init__(self, port: int) -> None:
        self.origin = f"http://127.0.0.1:{port}"
        self.url = f"{self.origin}/mcp"
        self.reset()

    def reset(self) -> None:
        """Behave again, as if nothing had been requested."""
        self.answers: dict[str, Answer] = {}
        self.challenge = f'Bearer resource_metadata="{self.origin}{RESOURCE_METADATA}"'
        self.requests: list[tuple[str, dict[str, str]]] = []
        """Each path that was requested, with the form that came with it."""
        self.token_headers: list[str | None] = []
        """The `Authorization` header of each request to `/mcp`."""
        self.accepts: Callable[[str], bool] = lambda header: header.startswith("Bearer ")
        self.lifetime: Any = 3600

    def count(self, path: str) -> int:
        return sum(requested == path for requested, _ in self.requests)

    def server_metadata(self, **changed: Any) -> dict[str, Any]:
        """The metadata of its authorization server, with some of it changed."""
        return {
            "issuer": self.origin,
            "authorization_endpoint": f"{self.origin}/authorize",
            "token_endpoint": f"{self.origin}/token",
            "registration_endpoint": f"{self.origin}/register",
            "response_types_supported": ["code"],
            "code_challenge_methods_supported": ["S256"],
            "token_endpoint_auth_methods_supported": ["none"],
            **changed,
        }

    def tokens(self, **changed: Any) -> dict[str, Any]:
        """The answer of its token endpoint, with some of it changed."""
        number = self.count("/token")
        return {
            "access_token": f"access-{number}",
            "refresh_token": f"refresh-{number}",
            "token_type": "Bearer",
            "expires_in": self.lifetime,
            **changed,
        }

    async def handle(self, request: Request) -> Response:
        path = request.url.path
        body = (await request.body()).decode()
        is_form = request.headers.get("content-type", "").startswith("application/x-www-form")
        form = {k: v[0] for k, v in parse_qs(body).items()} if is_form else {}
        self.requests.append((path, form))
        answer = self.answers.get(path)
        if callable(answer) and not isinstance(answer, Response):
            return await answer(request)
        if isinstance(answer, Response):
            return answer
        return JSONResponse(answer) if answer is not None else self._behave(request, path)

    def _behave(self, request: Request, path: str) -> Response:
        match path:
            case "/mcp":
                given = request.headers.get("authorization")
                self.token_headers.append(given)
                if self.accepts(given or ""):
                    return JSONResponse({"jsonrpc": "2.0", "id": 1, "result": {}})
                return Response("", 401, {"www-authenticate": self.challenge})
            case _ if path == RESOURCE_METADATA:
                return JSONResponse({"resource": self.url, "authorization_servers": [self.origin]})
            case _ if path == SERVER_METADATA:
                return JSONResponse(self.server_metadata())
            case "/register":
                return JSONResponse({"client_id": "c", "redirect_uris": ["http://127.0.0.1/"]}, 201)
            case "/authorize":
                asked = request.query_params
                answer = urlencode({"code": "the-code", "state": asked["state"]})
                return RedirectResponse(f"{asked['redirect_uri']}?{answer}")
            case "/token":
                return JSONResponse(self.tokens())
            case _:
                return Response("", 404)


@contextmanager
def hostile_server() -> Generator[HostileServer]:
    """A server that runs for as long as the block."""
    port = free_port()
    server = HostileServer(port)
    methods = ["GET", "POST", "DELETE"]
    app = Starlette(routes=[Route("/{path:path}", server.handle, methods=methods)])
    with served(app, port=port):
        yield server
