"""Random and hostile HTTP requests, the same ones for the same seed.

`attack` sends them to a board in this process; `python -m tests.fuzz` sends many more to real
gateways, over HTTP and on stdio.
"""

from __future__ import annotations

import hashlib
import json
import random
import string
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

import anyio
import httpx2
from starlette.applications import Starlette

from pegboard import Pegboard
from pegboard.core.policy import Policy, Rule
from pegboard.server.auth import Auth, StaticKey, StaticKeys
from pegboard.server.host_guard import HostGuard
from pegboard.server.serving import asgi_app, build_server

KEYS = {"ann": "key-of-ann", "bob": "key-of-bob"}
SECRETS = {"ann": "the secret of ann", "bob": "the secret of bob"}
METHODS = (
    "tools/list", "tools/call", "tools/describe", "tools/describe_batch", "tools/manifest",
    "initialize", "ping", "resources/read", "prompts/get", "completion/complete",
    "logging/setLevel",
    "subscriptions/listen_", "notifications/initialized", "rpc.discover", "", "../../etc/passwd",
)  # fmt: skip
TOOLS = (
    "secret_of_ann", "secret_of_bob", "big_of_bob",
    "search_tools", "describe_tools", "call_tool", "call_tools", "read_result", "secret_of_ann",
    "secret_of_bob", "big_of_ann", "tools_dispatch", "get_tool_schema", "__proto__", "a" * 5_000,
    "secret_of_ann\u0000", "..", "private.secret_of_ann", "private/secret_of_ann",
    "mail", "echo", "a." * 3_000, "call_write_tool", "get_tool_description", "invoke_tool",
)  # fmt: skip
VERSIONS = ("2026-07-28", "2025-11-25", "2024-11-05", "1999-01-01", "", "x" * 300, None)
PATHS = (
    "/mcp", "/mcp/proxy", "/mcp/index", "/mcp/hierarchy", "/mcp/../mcp", "/mcp/%2e%2e/etc",
    "/health",
    "/mcp/proxy?mode=dynamic", "/mcp?mode=%00", "/.well-known/oauth-protected-resource", "//mcp",
)  # fmt: skip


def board() -> Pegboard:
    """Tools for everybody, and private ones for ann and for bob."""
    made = Pegboard("fuzzed", mode="proxy", spill_tokens=200)

    def private(name: str) -> None:
        @made.tool(name=f"secret_of_{name}", category="private")
        def secret(n: int = 0) -> str:
            """Tell a secret."""
            return SECRETS[name]

        @made.tool(name=f"big_of_{name}", category="private")
        def big(rows: int = 200) -> list[str]:
            """Tell much."""
            return [f"{SECRETS[name]} {row}" for row in range(min(rows, 500))]

    for name in SECRETS:
        private(name)

    @made.tool(category="public")
    def echo(text: str, nested: dict[str, Any] | None = None) -> str:
        """Say it again."""
        return text[:100]

    rules = [Rule(categories=("public",))]
    rules += [Rule(principals=(name,), tools=(f"*_of_{name}",)) for name in SECRETS]
    made.policy = Policy(rules, default="deny")
    return made


def application() -> Starlette:
    """The board over HTTP, behind static keys."""
    hashes = {name: hashlib.sha256(key.encode()).hexdigest() for name, key in KEYS.items()}
    auth = Auth(verifier=StaticKeys(StaticKey(name, hashed) for name, hashed in hashes.items()))
    return asgi_app(build_server(board()), HostGuard(), auth=auth)


@dataclass(frozen=True)
class Hostile:
    """One request, and on whose behalf it claims to be."""

    who: str | None
    verb: str
    path: str
    headers: list[tuple[str, str]]
    body: bytes


class Attacker:
    """Makes requests; remembers handles and sessions of others, to try them."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.handles: list[str] = ["0" * 32]
        self.sessions: list[str] = ["0" * 32]

    def request(self) -> Hostile:
        """A request; most are sound on the outside, so that what is inside gets somewhere."""
        choose = self.random.choice
        who = choose(("ann", "bob", "bob", None))
        if self.random.random() < 0.6:
            return self._sound(who)
        method = choose(METHODS)
        verb = "POST" if self.random.random() < 0.9 else choose(("GET", "PUT", "DELETE", "OPTIONS"))
        return Hostile(who, verb, choose(PATHS), self._headers(who, method), self._body(method))

    def learn(self, session: str | None, text: str) -> None:
        """Remember what an answer gives away."""
        if session:
            self.sessions = [*self.sessions[-20:], session]
        if '"handle' in text:
            handle = text.split("handle", 1)[1].strip('\\":= ')[:60].split('"')[0].split("\\")[0]
            self.handles = [*self.handles[-20:], handle]

    def _sound(self, who: str | None) -> Hostile:
        method = self.random.choice(("tools/call",) * 6 + METHODS[:5])
        params = {**(self._params(method, sound=True))}
        headers = [
            ("Host", "127.0.0.1"),
            ("Accept", "application/json, text/event-stream"),
            ("Content-Type", "application/json"),
            ("MCP-Protocol-Version", "2026-07-28"),
            ("Mcp-Method", method),
        ]
        name = params.get("name")
        if isinstance(name, str) and name.isascii() and name.isprintable():
            headers.append(("Mcp-Name", name))
        if who is not None:
            headers.append(("Authorization", f"Bearer {KEYS[who]}"))
        body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
        return Hostile(who, "POST", "/mcp", headers, json.dumps(body).encode())

    def _headers(self, who: str | None, method: str) -> list[tuple[str, str]]:
        choose, chance = self.random.choice, self.random.random
        headers = [("Host", choose(("127.0.0.1", "localhost", "evil.example", "127.0.0.1:99999")))]
        if chance() < 0.9:
            headers[0] = ("Host", "127.0.0.1")
        headers.append(("Accept", "application/json, text/event-stream"))
        headers.append(("Content-Type", choose(("application/json",) * 9 + ("text/plain",))))
        if who is not None:
            headers.append(("Authorization", f"Bearer {KEYS[who]}"))
        elif chance() < 0.5:
            headers.append(("Authorization", choose(("Bearer x", "Basic eA==", "Bearer ", "é"))))
        version = choose(VERSIONS)
        if version is not None:
            headers.append(("MCP-Protocol-Version", version))
        if chance() < 0.8:
            headers.append(("Mcp-Method", method or "x"))
        if chance() < 0.3:
            headers.append(("Mcp-Session-Id", choose(self.sessions)))
        if chance() < 0.1:
            headers.append((choose(("Mcp-Param-n", "Pegboard-Mode", "X-Y")), self._text(60)))
        return headers

    def _body(self, method: str) -> bytes:
        kind = self.random.random()
        if kind < 0.05:
            return self.random.randbytes(self.random.randrange(200))
        if kind < 0.06:
            return b'{"jsonrpc":"2.0","id":1,"params":' + b'{"a":' * 2_000 + b"1" + b"}" * 2_001
        if kind < 0.065:
            return b"[" + b'"' + b"x" * 300_000 + b'"]'
        message: dict[str, Any] = {
            "jsonrpc": self.random.choice(("2.0", "2.0", "2.0", "1.0", 2)),
            "id": self.random.choice((1, "a", None, 1.5, [], 2**70)),
            "method": method,
            "params": self._params(method),
        }
        if kind < 0.15:
            message.pop(self.random.choice(list(message)))
        text = json.dumps([message, message] if kind > 0.97 else message)
        cut = self.random.randrange(len(text)) if kind < 0.1 else len(text)
        return text[:cut].encode("utf-8", "surrogatepass")

    def _params(self, method: str, *, sound: bool = False) -> Any:
        if not sound and self.random.random() < 0.1:
            return self._value(3)
        version = "2026-07-28" if sound or self.random.random() < 0.8 else self._text(10)
        meta: dict[str, Any] = {
            "io.modelcontextprotocol/protocolVersion": version,
            "io.modelcontextprotocol/clientCapabilities": {},
        }
        params: dict[str, Any] = {"_meta": meta}
        if method == "tools/call":
            params |= {"name": self.random.choice(TOOLS), "arguments": self._arguments()}
        elif method.startswith("tools/"):
            key = self.random.choice(("name", "names", "tool_names", "cursor", "lazy"))
            params[key] = self.random.choice(([self.random.choice(TOOLS)], self._value(2)))
        return params

    def _arguments(self) -> Any:
        return self.random.choice(
            (
                {},
                {"handle": self.random.choice(self.handles), "limit": self.random.choice((1, -1))},
                {"name": self.random.choice(TOOLS), "arguments": self._value(2)},
                {"calls": [{"name": self.random.choice(TOOLS), "arguments": {}}] * 3},
                {"query": self._text(200), "limit": self.random.choice((1, 10**9, "x", None))},
                {"names": [self.random.choice(TOOLS)]},
                {"n": 1, "include_fields": self._value(2)},
                self._value(3),
            )
        )

    def _value(self, depth: int) -> Any:
        choose = self.random.choice
        if depth == 0 or self.random.random() < 0.4:
            odd = (None, True, -1, 1e308, 2**64, "", self._text(20), "\ud800", "${HOME}", "../x")
            return choose(odd)
        size = self.random.randrange(4)
        if choose((True, False)):
            return [self._value(depth - 1) for _ in range(size)]
        return {self._text(8): self._value(depth - 1) for _ in range(size)}

    def _text(self, most: int) -> str:
        letters = string.ascii_letters + string.digits + " ._-/\\'\"<>{}$%"
        return "".join(self.random.choices(letters, k=self.random.randrange(most)))


@dataclass
class Findings:
    """What came back."""

    statuses: Counter[int] = field(default_factory=Counter[int])
    leaks: list[str] = field(default_factory=list[str])
    crashes: list[str] = field(default_factory=list[str])
    told: int = 0
    """Answers with a secret for the one it belongs to: the attack did reach the tools."""

    def note(self, sent: Hostile, status: int, text: str) -> None:
        self.statuses[status] += 1
        if status >= 500 or "Internal error" in text or "Traceback" in text:
            self.crashes.append(
                f"{status} {sent.verb} {sent.path} {sent.body[:300]!r} {text[:300]}"
            )
        for name, secret in SECRETS.items():
            if secret in text and sent.who == name:
                self.told += 1
            elif secret in text:
                self.leaks.append(f"{sent.who}: {sent.body[:300]!r}")


async def attack(requests: int, seed: int) -> Findings:
    """Send so many requests and look at what comes back."""
    attacker, findings, app = Attacker(seed), Findings(), application()
    transport = httpx2.ASGITransport(app, raise_app_exceptions=False)
    async with (
        app.router.lifespan_context(app),
        httpx2.AsyncClient(transport=transport, base_url="http://127.0.0.1") as client,
    ):
        for _ in range(requests):
            await _send(client, attacker, findings)
    return findings


async def _send(client: httpx2.AsyncClient, attacker: Attacker, findings: Findings) -> None:
    sent = attacker.request()
    raw = [(n.encode(), v.encode("utf-8")) for n, v in sent.headers]
    with anyio.move_on_after(5):
        async with client.stream(sent.verb, sent.path, content=sent.body, headers=raw) as answer:
            # A legacy session's GET is a stream without an end: look at how it begins.
            streams = sent.verb == "GET" and answer.status_code == 200
            text = "" if streams else (await answer.aread()).decode("utf-8", "replace")
            findings.note(sent, answer.status_code, text)
            attacker.learn(answer.headers.get("mcp-session-id"), text)
