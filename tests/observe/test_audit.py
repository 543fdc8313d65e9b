from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import anyio
import pytest

from pegboard.core.calls import Caller, CallResult, ToolCall
from pegboard.core.tools import Tool, constant_definition
from pegboard.errors import NotPermitted
from pegboard.observe.audit import AuditLog, audit_calls

PAY = Tool("pay", constant_definition({"type": "object"}), risk="destructive")


def lines(path: Path) -> list[dict[str, object]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


@pytest.mark.anyio
async def test_each_call_is_one_line_with_who_what_when_and_how_it_ended(tmp_path: Path) -> None:
    log = AuditLog(tmp_path / "audit.jsonl")

    async def pay(call: ToolCall) -> CallResult:
        if call.arguments["sum"] > 10:
            raise NotPermitted("too much")
        if call.arguments["sum"] == 7:
            await anyio.sleep_forever()
        return CallResult.text("paid", is_error=call.arguments["sum"] < 0)

    handle = audit_calls(log, clock=lambda: 0.0)(pay)
    caller = Caller("ann", client="cursor")
    await handle(ToolCall(PAY, {"sum": 1, "to": "bob"}, caller=caller, id="1"))
    await handle(ToolCall(PAY, {"to": "bob", "sum": 1}, caller=caller, id="2"))
    await handle(ToolCall(PAY, {"sum": -1}, caller=caller))
    with pytest.raises(NotPermitted):
        await handle(ToolCall(PAY, {"sum": 11}, caller=caller))
    with anyio.move_on_after(0.01):
        await handle(ToolCall(PAY, {"sum": 7}, caller=caller))
    log.close()
    written = lines(tmp_path / "audit.jsonl")
    assert [line["outcome"] for line in written] == [
        "ok", "ok", "tool_error", "error", "cancelled",
    ]  # fmt: skip
    assert written[0]["arguments"] == written[1]["arguments"] != written[2]["arguments"]
    assert written[3]["error"] == "not_permitted"
    assert written[0] | {"arguments": ""} == {
        "time": "1970-01-01T00:00:00.000+00:00", "operation": "tools/call", "call": "1",
        "principal": "ann", "client": "cursor", "tool": "pay", "risk": "destructive",
        "arguments": "", "outcome": "ok", "ms": 0.0,
    }  # fmt: skip
    assert "bob" not in (tmp_path / "audit.jsonl").read_text()


def test_a_full_file_is_set_aside_and_old_ones_go(tmp_path: Path) -> None:
    now = 0.0
    path = tmp_path / "audit.jsonl"
    log = AuditLog(path, max_bytes=100, max_files=2, clock=lambda: now)
    for number in range(40):
        now += 1
        log.write({"number": number, "filling": "x" * 30})
    log.close()
    files = sorted(tmp_path.iterdir())
    assert len(files) == 3
    assert all(file.stat().st_size <= 100 for file in files)
    assert lines(path)[-1]["number"] == 39


WRITER = """
import sys
from pathlib import Path
from pegboard.observe.audit import AuditLog

log = AuditLog(Path(sys.argv[1]), max_bytes=5_000)
for number in range(300):
    log.write({"writer": sys.argv[2], "number": number, "filling": "x" * 40})
"""


def test_processes_that_share_a_file_lose_and_mix_nothing(tmp_path: Path) -> None:
    path = tmp_path / "audit.jsonl"
    writers = [
        subprocess.Popen([sys.executable, "-c", WRITER, str(path), str(number)])
        for number in range(3)
    ]
    assert [writer.wait(timeout=60) for writer in writers] == [0, 0, 0]
    written = [line for file in tmp_path.iterdir() for line in lines(file)]
    assert {(line["writer"], line["number"]) for line in written} == {
        (str(w), n) for w in range(3) for n in range(300)
    }


def test_the_file_is_for_its_owner_alone(tmp_path: Path) -> None:
    AuditLog(tmp_path / "audit.jsonl").close()
    assert (tmp_path / "audit.jsonl").stat().st_mode & 0o077 == 0
