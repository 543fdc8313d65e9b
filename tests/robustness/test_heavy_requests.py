"""No request of one client holds up another: validation, `select` and `grep` on hostile input."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest
from tests.robustness.world import Bystander, Gateway, listed, running, tool, write

LOOK_AHEAD = r"(?!.*\.\.)\S+@\S+\.\S+"
WIDE = r"[ab]*a[ab]{1000}c"


@pytest.fixture(scope="module")
def gateway(tmp_path_factory: pytest.TempPathFactory) -> Generator[Gateway]:
    folder = tmp_path_factory.mktemp("heavy")
    tools = [
        tool("mail", to={"type": "string", "pattern": LOOK_AHEAD}, n={"type": "integer"}),
        tool("wide", text={"type": "string", "pattern": WIDE}),
        tool("many", items={"type": "array", "uniqueItems": True, "items": {"type": "string"}}),
        tool("rows", count={"type": "integer"}),
        tool("plain", text={"type": "string", "pattern": "^[a-z]+$"}),
    ]
    servers = {"s": listed(folder, "s", *tools)}
    with running(folder, write(folder, servers, 'mode = "proxy"\n')) as gateway:
        gateway.call("s_rows", {"count": 2_000})  # loads the tokenizer, once
        yield gateway


def test_a_look_ahead_pattern_is_left_to_the_server(gateway: Gateway) -> None:
    with Bystander(gateway) as other:
        text = gateway.text("s_mail", {"to": "a" * 200_000})
    assert text == str(200_000 + len('{"to": ""}')), "the server decides, and was called"
    assert other.worst < other.allowance


def test_other_keywords_beside_such_a_pattern_are_still_checked(gateway: Gateway) -> None:
    refused = gateway.call("s_mail", {"to": "x", "n": "many"})
    assert refused["isError"]
    assert "`n` must be int" in refused["content"][0]["text"]


def test_a_wide_pattern_over_a_large_text_delays_nobody(gateway: Gateway) -> None:
    with Bystander(gateway) as other:
        answer = gateway.call("s_wide", {"text": "ab" * 500_000})
    assert answer.get("isError") or answer["content"][0]["text"].isdigit()
    assert other.worst < other.allowance


def test_large_arguments_that_do_not_fit_are_refused_as_small_ones_are(gateway: Gateway) -> None:
    with Bystander(gateway) as other:
        large = gateway.call("s_many", {"items": [str(n) for n in range(100_000)] * 2})
    assert large["isError"]
    assert "the same item twice" in large["content"][0]["text"]
    assert gateway.call("s_many", {"items": ["1", "2"]}).get("isError") is not True
    assert other.worst < other.allowance


@pytest.mark.parametrize(
    "select",
    [
        "[*].[id, text, tags[?@ == 'x']] | sort_by(@, &[0])",
        "[?contains(text, 'ba') && length(tags[?contains(@, '9')]) > `0`].id",
        f"[{', '.join(['length(to_string(@))'] * 40)}]",
    ],
)
def test_an_expensive_select_delays_nobody(select: str, gateway: Gateway) -> None:
    arguments = {"name": "s_rows", "arguments": {"count": 8_000}, "select": select}
    with Bystander(gateway) as other:
        answer = gateway.call("call_tool", arguments)
    assert answer["content"][0]["text"]
    assert other.worst < other.allowance


@pytest.mark.parametrize(
    "how", [{"grep": WIDE}, {"select": "[*].tags[*].to_string(@) | sort(@[])"}]
)
def test_reading_a_stored_result_delays_nobody(how: dict[str, str], gateway: Gateway) -> None:
    stored = json.loads(gateway.text("s_rows", {"count": 8_000}))
    with Bystander(gateway) as other:
        answer = gateway.call("read_result", {"handle": stored["handle"], **how})
    assert answer["content"][0]["text"]
    assert other.worst < other.allowance


@pytest.mark.parametrize(
    "arguments",
    [
        {"name": "a." * 1_900_000, "arguments": {}},
        {"name": "x" * 3_800_000, "arguments": {}},
        {"name": "s_plain", "arguments": {"text": "x", "y" * 3_000_000: 1}},
        {"name": "s_plain", "arguments": {f"p{n}": n for n in range(150_000)}},
        {"name": "s_plain", "arguments": "[" * 3_000_000},
        {"name": "s_plain", "arguments": {}, "include_fields": ["a.b[0].c" * 100_000]},
        {"name": "s_plain", "arguments": {}, "select": "[" * 900_000},
    ],
    ids=["dots", "long-name", "long-key", "keys", "nested-text", "fields", "select"],
)
def test_large_odd_requests_delay_nobody(arguments: dict[str, Any], gateway: Gateway) -> None:
    with Bystander(gateway) as other:
        answer = gateway.ask("tools/call", name="call_tool", arguments=arguments)
    assert "Internal error" not in json.dumps(answer)
    assert other.worst < other.allowance


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("search_tools", {"queries": ["a" + " " * 300_000 + "b"]}),
        ("search_tools", {"queries": " " * 300_000 + "a: b"}),
        ("describe_tools", {"names": [f"plain text {n}" for n in range(100_000)]}),
        ("call_tools", {"calls": [{"name": "s_plain", "arguments": "```" + " " * 5_000 + "x"}]}),
    ],
    ids=["white-space", "topic", "names", "fence"],
)
def test_large_odd_meta_tool_calls_delay_nobody(
    name: str, arguments: dict[str, Any], gateway: Gateway
) -> None:
    with Bystander(gateway) as other:
        answer = gateway.ask("tools/call", name=name, arguments=arguments)
    assert answer["result"]["content"]
    assert other.worst < other.allowance


@pytest.mark.parametrize("ref", [5, "ref/prompt", ["ref/prompt"], None])
def test_a_malformed_reference_is_an_unknown_one(ref: Any, gateway: Gateway) -> None:
    answer = gateway.ask("completion/complete", ref=ref, argument={"name": "a", "value": "b"})
    assert answer["error"]["code"] == -32602, answer


def test_a_description_of_white_space_delays_nobody(tmp_path: Path) -> None:
    hostile = {**tool("odd"), "description": "<" + " " * 200_000 + "system"}
    servers = {"s": listed(tmp_path, "s", tool("plain")), "h": listed(tmp_path, "h", hostile)}
    with running(tmp_path, write(tmp_path, servers)) as gateway:
        assert gateway.names() == {"s_plain", "h_odd"}


def test_doctor_names_patterns_that_are_left_to_the_server(tmp_path: Path) -> None:
    tools = [tool("mail", to={"type": "string", "pattern": LOOK_AHEAD})]
    config = write(tmp_path, {"s": listed(tmp_path, "s", *tools)})
    line = [sys.executable, "-m", "pegboard", "doctor", "--config", str(config), "--json"]
    done = subprocess.run(
        line,
        capture_output=True,
        text=True,
        check=False,
        env={"PEGBOARD_HOME": str(tmp_path / "h")},
    )
    assert done.returncode == 0, done.stderr
    [server] = json.loads(done.stdout)["servers"]
    [problem] = server["problems"]
    assert "s: s_mail: " in problem
    assert LOOK_AHEAD in problem
