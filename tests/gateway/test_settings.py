"""Every setting of `pegboard.toml` is read by whoever it is for, and does what its page says."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, Callable, Generator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any

import anyio
import mcp_types as t
import pytest
from mcp import Client
from mcp.client.stdio import stdio_client
from starlette.testclient import TestClient
from tests.gateway.support import client_of, command, entry, running, said, searched
from tests.upstream.servers.everything import Answer, Context, Everything, Params
from tests.upstream.support import in_memory, memory, script

from pegboard import Pegboard
from pegboard.config.documents import Document
from pegboard.config.loader import Configuration
from pegboard.config.server_entries import ConfigEnvironment, build_spec
from pegboard.config.settings import (
    ApiKey,
    AuthSettings,
    Budgets,
    CallSettings,
    DynamicSettings,
    HttpSettings,
    ObserveSettings,
    ResultSettings,
    RiskRules,
    ServerEntry,
    Settings,
    StoreSettings,
    TrustSettings,
    UpstreamSettings,
)
from pegboard.core.calls import Caller
from pegboard.core.options import Options
from pegboard.errors import ConfigError
from pegboard.gateway.from_settings import (
    build_auth,
    build_logins,
    build_naming,
    build_observability,
    build_policy,
    build_rate_limits,
    find_data_folder,
    open_store,
    settings_to_options,
)
from pegboard.gateway.gateway import Gateway
from pegboard.gateway.http_app import build_gateway_app
from pegboard.gateway.lock_storage import open_lock_storage
from pegboard.gateway.operator_decisions import ToolTrust
from pegboard.store.memory import MemoryStore
from pegboard.tokens import TOKENIZERS, count_tokens

pytestmark = pytest.mark.anyio

READ_ELSEWHERE = {
    "servers": "each becomes a spec, below",
    "sources": "tests/config/test_loader.py",
    "imports": "tests/config/test_loader.py",
    "instructions": "test_clients_get_the_configured_instructions",
    "pins": "tests/gateway/test_configured.py",
    "upstreams.start_concurrency": "test_no_more_servers_are_listed_at_once_than_configured",
    "upstreams.max_processes": "tests/e2e/test_isolation.py",
    "upstreams.max_processes_per_principal": "tests/e2e/test_isolation.py",
    "upstreams.refresh": "test_a_server_that_is_used_is_listed_again_unless_configured_otherwise",
    "http.allowed_hosts": "test_hosts_and_origins_that_are_configured_are_answered",
    "http.allowed_origins": "test_hosts_and_origins_that_are_configured_are_answered",
    "http.legacy": "test_older_clients_get_a_session_unless_they_are_served_without",
    "http.unauthenticated": "test_other_machines_need_auth_unless_configured_twice",
    "http.operators": "tests/dashboard/test_gateway_dashboard.py",
    "http.operator_groups": "tests/dashboard/test_gateway_dashboard.py",
    "http.add_commands": "tests/dashboard/test_servers_page.py",
    "http.max_sessions": "tests/robustness/test_sessions_and_connections.py",
    "http.max_sessions_per_principal": "tests/robustness/test_sessions_and_connections.py",
    "http.max_connections": "tests/robustness/test_sessions_and_connections.py",
    "http.header_timeout": "tests/robustness/test_sessions_and_connections.py",
    "http.body_timeout": "tests/robustness/test_sessions_and_connections.py",
    "http.write_timeout": "tests/robustness/test_sessions_and_connections.py",
    "observe.metrics_readers": "tests/gate/test_dashboard.py",
    "observe.arguments": "tests/dashboard/test_gateway_dashboard.py",
    "observe.log": "test_the_log_is_json_if_configured",
}


class Watched:
    """Settings that note who asks for which of them."""

    def __init__(self, value: Any, read: set[str], path: str = "") -> None:
        self._value, self._read, self._path = value, read, path

    def __getattr__(self, name: str) -> Any:
        path = f"{self._path}{name}"
        self._read.add(path)
        value = getattr(self._value, name)
        return Watched(value, self._read, f"{path}.") if is_dataclass(value) else value


def leaves(kind: Any, path: str = "") -> set[str]:
    found: set[str] = set()
    for one in fields(kind):
        value = getattr(kind, one.name)
        found |= leaves(value, f"{path}{one.name}.") if is_dataclass(value) else {path + one.name}
    return found


def test_every_setting_is_read_by_the_part_that_it_is_for(tmp_path: Path) -> None:
    read: set[str] = set()
    settings: Any = Settings(
        auth=AuthSettings(kind="jwt", issuer="https://a.test", audience="https://b.test"),
        store=StoreSettings(url="redis://127.0.0.1:1"),
        observe=ObserveSettings(metrics="open", audit="audit.jsonl"),
        trust=TrustSettings(lock="lock.json"),
    )
    watched: Any = Watched(settings, read)
    keyed: Any = Watched(
        Settings(auth=AuthSettings(kind="keys", keys=(ApiKey(principal="a", sha256="0" * 64),))),
        read,
    )
    around = ConfigEnvironment({}, tmp_path, tmp_path)
    document = Document(tmp_path / "pegboard.toml", "", {}, "toml")
    readers: list[Callable[[], object]] = [
        lambda: build_spec("a", ServerEntry(command="x"), document, (), around, watched),
        lambda: settings_to_options(watched),
        lambda: build_naming(watched),
        lambda: find_data_folder(watched, {}, tmp_path),
        lambda: build_policy(watched),
        lambda: build_rate_limits(watched, MemoryStore()),
        lambda: open_store(watched, None),
        lambda: build_logins(watched, MemoryStore()),
        lambda: build_auth(watched),
        lambda: build_auth(keyed),
        lambda: build_observability(watched, tmp_path),
        lambda: open_lock_storage(watched, tmp_path, MemoryStore()),
        lambda: ToolTrust(None, watched.trust).rule("a"),
    ]
    for reader in readers:
        reader()
    assert leaves(Settings()) - read == set(READ_ELSEWHERE)


class Slow(Everything):
    """Counts how many calls it has at a time, and holds them until it is told to let go."""

    def __init__(self) -> None:
        super().__init__()
        self.now = self.most = 0
        self.go, self.two = anyio.Event(), anyio.Event()
        self.tools = {"hold": self.hold}

    async def hold(self, ctx: Context, p: Params) -> Answer:
        self.now += 1
        self.most = max(self.most, self.now)
        if self.now == 2:
            self.two.set()
        await self.go.wait()
        self.now -= 1
        return t.CallToolResult(content=[t.TextContent(type="text", text="held")])


async def test_one_server_gets_no_more_calls_at_once_than_configured(tmp_path: Path) -> None:
    slow, answers = Slow(), list[str]()
    settings = Settings(mode="eager", calls=CallSettings(upstream_concurrency=2, queue=1))
    async with (
        running(
            [in_memory("s")],
            tmp_path,
            settings=settings,
            open_transport=memory({"s": (slow, "modern")}),
        ) as gateway,
        client_of(gateway, "modern") as client,
        anyio.create_task_group() as tasks,
    ):

        async def call(number: int) -> None:
            answers.append(said(await client.call_tool("s_hold", {"number": number})))
            if "busy" in answers[-1]:
                await slow.two.wait()
                slow.go.set()

        for number in range(4):
            tasks.start_soon(call, number)
    assert slow.most == 2, answers
    assert answers.count("held") == 3
    assert (
        sum("The server s is busy: 2 calls are running and 1 more are" in a for a in answers) == 1
    )


async def test_each_server_has_its_own_seconds_for_a_call(tmp_path: Path) -> None:
    wires = memory({"quick": (Slow(), "modern"), "patient": (Slow(), "legacy")})
    specs = [in_memory("quick", timeout=0.05), in_memory("patient", timeout=0.1)]
    settings = Settings(mode="eager")
    async with (
        running(specs, tmp_path, settings=settings, open_transport=wires) as gateway,
        client_of(gateway, "modern") as client,
    ):
        assert "within 0.05 s" in said(await client.call_tool("quick_hold", {}))
        assert "within 0.1 s" in said(await client.call_tool("patient_hold", {}))


def test_a_rule_wins_over_what_a_tool_says_of_itself() -> None:
    board = Pegboard(risk_rules={"wi*": "destructive"})
    board.tool(annotations={"readOnlyHint": True})(wipe)
    assert board.find("wipe").risk == "destructive"


def wipe() -> None:
    """Wipe it all."""


async def test_rules_of_risk_decide_through_which_meta_tool_a_tool_is_called(
    tmp_path: Path,
) -> None:
    rules = RiskRules(destructive=("a.echo",), read=("*echo",))
    specs = [script("polite", server="a"), script("polite", server="b")]
    async with (
        running(specs, tmp_path, settings=Settings(mode="proxy", risk_rules=rules)) as gateway,
        client_of(gateway, "modern") as client,
    ):
        assert {t.name: t.risk for t in gateway.board.tools()} == {
            "a_echo": "destructive",
            "b_echo": "read",
        }
        told = await client.call_tool("call_tool", {"name": "a_echo", "arguments": {}})
        assert told.is_error
        assert "call_destructive_tool" in said(told)


async def test_the_mode_of_a_client_is_chosen_by_a_glob_over_its_name(tmp_path: Path) -> None:
    settings = Settings(clients={"visual*": "index"})
    info = t.Implementation(name="visual thing", version="1")
    async with (
        running([script("polite", server="a")], tmp_path, settings=settings) as gateway,
        client_of(gateway, "legacy", client_info=info) as client,
    ):
        listed = [tool.name for tool in (await client.list_tools()).tools]
        assert listed[0] == "list_available_tools"


class Many(Everything):
    """Twelve tools that say the same of different things, and rows to read."""

    def __init__(self) -> None:
        super().__init__()
        self.tools = {f"paint_{n}": self.rows for n in range(12)}
        self.calls = 0

    async def rows(self, ctx: Context, p: Params) -> Answer:
        self.calls += 1
        rows = ",".join(f'{{"identifier":{n},"colour":"red"}}' for n in range(40))
        return t.CallToolResult(content=[t.TextContent(type="text", text=f"[{rows}]")])


async def test_a_search_enables_no_more_tools_than_configured(tmp_path: Path) -> None:
    settings = Settings(mode="dynamic", dynamic=DynamicSettings(per_search=3))
    wires = memory({"m": (Many(), "modern")})
    async with (
        running([in_memory("m")], tmp_path, settings=settings, open_transport=wires) as gateway,
        client_of(gateway, "legacy") as client,
    ):
        await client.call_tool("search_tools", {"query": "paint"})
        listed = [tool.name for tool in (await client.list_tools()).tools]
        assert sum(name.startswith("m_paint") for name in listed) == 3


@pytest.mark.parametrize(("saving", "table"), [(0.15, True), (0.99, False)])
async def test_a_table_is_sent_where_it_saves_as_much_as_configured(
    saving: float, table: bool, tmp_path: Path
) -> None:
    settings = Settings(mode="proxy", results=ResultSettings(table_saving=saving))
    wires = memory({"m": (Many(), "modern")})
    async with (
        running([in_memory("m")], tmp_path, settings=settings, open_transport=wires) as gateway,
        client_of(gateway, "modern") as client,
    ):
        got = said(
            await client.call_tool("call_write_tool", {"name": "m_paint_1", "arguments": {}})
        )
        assert got.startswith("[{") is not table


async def test_results_are_cached_by_a_glob_over_tool_names(tmp_path: Path) -> None:
    many = Many()
    settings = Settings(
        mode="eager",
        risk_rules=RiskRules(read=("*",)),
        results=ResultSettings(cache={"m_paint_1*": 60}),
    )
    async with (
        running(
            [in_memory("m")],
            tmp_path,
            settings=settings,
            open_transport=memory({"m": (many, "modern")}),
        ) as gateway,
        client_of(gateway, "modern") as client,
    ):
        for name in ("m_paint_11", "m_paint_11", "m_paint_2", "m_paint_2"):
            await client.call_tool(name, {})
    assert many.calls == 3


async def test_the_log_of_a_server_keeps_to_its_size(tmp_path: Path) -> None:
    settings = Settings(upstreams=UpstreamSettings(log_bytes=5000))
    document = Document(tmp_path / "pegboard.toml", "", {}, "toml")
    around = ConfigEnvironment({}, tmp_path, tmp_path)
    noisy = script("misbehaving", "floods_stderr", server="noisy")
    its = ServerEntry(command=noisy.command, args=noisy.args)
    spec = build_spec("noisy", its, document, (), around, settings)
    async with running([spec], tmp_path, settings=settings) as gateway:
        await gateway.wait_until_listed()
    log = tmp_path / "logs" / "noisy.log"
    assert 0 < log.stat().st_size <= 5000
    assert log.with_name("noisy.log.1").stat().st_size <= 5000


async def test_tokens_are_counted_by_the_configured_tokenizer() -> None:
    text = "грузовик с апельсинами " * 400
    tokens = {name: count_tokens(text, name) for name in TOKENIZERS}
    between = sum(tokens.values()) // 2
    assert tokens["o200k_base"] < between < tokens["cl100k_base"]
    for name in TOKENIZERS:
        budgets = Budgets(tokenizer=name)
        settings = Settings(budgets=budgets, results=ResultSettings(spill_tokens=between))
        options: dict[str, Any] = {**settings_to_options(settings), "mode": "proxy"}
        board = Pegboard(**options)

        @board.tool
        def long() -> str:
            """A long text."""
            return text

        result = await board.call("long", caller=Caller(mode="proxy"))
        assert ("handle" in result.output) is (tokens[name] > between)


async def test_clients_get_the_configured_instructions(tmp_path: Path) -> None:
    settings = Settings(instructions="Ask before you paint.")
    async with (
        running([script("polite", server="a")], tmp_path, settings=settings) as gateway,
        client_of(gateway, "modern") as client,
    ):
        assert (client.instructions or "").startswith("Ask before you paint.\n")


@contextmanager
def over_http(folder: Path, http: HttpSettings, host: str = "127.0.0.1") -> Generator[TestClient]:
    gateway = Gateway(Configuration(Settings(http=http)), folder=folder)
    with TestClient(
        build_gateway_app(gateway, host, environ={}), base_url="http://127.0.0.1"
    ) as client:
        yield client


def test_hosts_and_origins_that_are_configured_are_answered(tmp_path: Path) -> None:
    http = HttpSettings(allowed_hosts=("tools.test",), allowed_origins=("https://page.test",))
    with over_http(tmp_path, http) as client:

        def status(**headers: str) -> int:
            return client.get("/health", headers=headers).status_code

        assert status(host="tools.test") == status(origin="https://page.test") == 200
        assert status(host="other.test") == 421
        assert status(origin="https://other.test") == 403


INITIALIZE = {
    "protocolVersion": "2025-06-18",
    "capabilities": {},
    "clientInfo": {"name": "c", "version": "1"},
}


@pytest.mark.parametrize("legacy", ["sessions", "stateless"])
def test_older_clients_get_a_session_unless_they_are_served_without(
    legacy: Any, tmp_path: Path
) -> None:
    with over_http(tmp_path, HttpSettings(legacy=legacy)) as client:
        answer = client.post(
            "/mcp",
            json={"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": INITIALIZE},
            headers={"Accept": "application/json, text/event-stream"},
        )
        assert answer.status_code == 200
        assert ("mcp-session-id" in answer.headers) is (legacy == "sessions")


def test_other_machines_need_auth_unless_configured_twice(tmp_path: Path) -> None:
    said_once = Gateway(
        Configuration(Settings(http=HttpSettings(unauthenticated=True))), folder=tmp_path
    )
    unsaid = Gateway(Configuration(Settings()), folder=tmp_path)
    environ = {"PEGBOARD_UNAUTHENTICATED": "1"}
    for gateway, around in ((said_once, {}), (unsaid, environ)):
        with pytest.raises(ConfigError, match="unauthenticated"):
            build_gateway_app(gateway, "0.0.0.0", environ=around)
    assert build_gateway_app(said_once, "0.0.0.0", environ=environ)


@pytest.mark.parametrize("form", ["json", "text"])
async def test_the_log_is_json_if_configured(form: str, tmp_path: Path) -> None:
    bad = entry("misbehaving", "bad_tool")
    config = tmp_path / "pegboard.toml"
    config.write_text(
        f"observe = {{ log = '{form}' }}\n"
        f"[servers.s]\ncommand = '{bad['command']}'\nargs = {bad['args']}\n"
    )
    with anyio.fail_after(30), (tmp_path / "stderr.txt").open("w") as stderr:
        transport = stdio_client(command(config, tmp_path / "home"), errlog=stderr)
        async with Client(transport, mode="auto", cache=None) as client:
            assert await searched(client, "echo")
    lines = [x for x in (tmp_path / "stderr.txt").read_text().splitlines() if "is left out" in x]
    assert lines
    logged = [json.loads(line)["level"] for line in lines if line.startswith("{")]
    assert logged == (["warning"] * len(lines) if form == "json" else [])


async def test_a_server_that_is_used_is_listed_again_unless_configured_otherwise(
    tmp_path: Path,
) -> None:
    for refresh in (True, False):
        it, folder = Everything(), tmp_path / str(refresh)
        wires = memory({"e": (it, "modern")})
        settings = Settings(mode="eager", upstreams=UpstreamSettings(refresh=refresh))
        async with running([in_memory("e")], folder, settings=settings, open_transport=wires):
            pass
        it.tools["new"] = it.echo
        async with (
            running([in_memory("e")], folder, settings=settings, open_transport=wires) as gateway,
            client_of(gateway, "modern") as client,
        ):
            await client.call_tool("e_echo", {})
            with anyio.move_on_after(5 if refresh else 0.3):
                while "e_new" not in {tool.name for tool in gateway.board.tools()}:
                    await anyio.lowlevel.checkpoint()
            known = {tool.name for tool in gateway.board.tools()}
            assert ("e_new" in known) is refresh


async def test_no_more_servers_are_listed_at_once_than_configured(tmp_path: Path) -> None:
    open_now: list[str] = []
    most = 0
    names = [f"s{n}" for n in range(6)]
    inside = memory({name: (Everything(), "modern") for name in names})

    @asynccontextmanager
    async def counted(spec: Any, log: Any, auth: Any) -> AsyncGenerator[Any]:
        nonlocal most
        open_now.append(spec.name)
        most = max(most, len(open_now))
        async with inside(spec, log, auth) as wire:
            yield wire
        open_now.remove(spec.name)

    settings = Settings(upstreams=UpstreamSettings(start_concurrency=2))
    specs = [in_memory(name) for name in names]
    async with running(specs, tmp_path, settings=settings, open_transport=counted) as gateway:
        assert len({tool.server for tool in gateway.board.tools()}) == 6
    assert most == 2


def test_a_gateway_and_a_board_of_ones_own_have_the_same_defaults() -> None:
    """But for the time of a call, which connections count by themselves, and the split by risk."""
    board = Options()
    differing = {
        name: (value, getattr(board, name))
        for name, value in settings_to_options(Settings()).items()
        if value != getattr(board, name)
    }
    assert differing == {"timeout": (None, 60.0), "risk": ("split", "auto")}
