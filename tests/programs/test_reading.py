"""Programs that read: their values, their checks before the first call, and their limits."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import anyio
import pytest
from tests.programs.conftest import MakeBoard, Tracker

from pegboard import Pegboard, build_server
from pegboard.core.calls import Caller
from pegboard.core.options import CodeOptions
from pegboard.core.policy import Policy, Rule
from pegboard.errors import ConfigError
from pegboard.testing import RecordingObserver

pytestmark = pytest.mark.anyio
BUSY = "while True:\n    try:\n        while True: pass\n    except BaseException: pass"


@pytest.mark.parametrize(
    ("program", "value"),
    [
        ("[i['key'] for i in await list_issues()][:2]", ["WEB-1", "WEB-2"]),
        ("len(list_issues())", 5),
        ("return sum(i['votes'] for i in await list_issues())", 15),
        ("sum(len(r) for r in await gather(list_issues(), list_issues(status='done')))", 10),
        ("[type(e).__name__ for e in await asyncio.gather(list_issues(), return_exceptions=True)]",
         ["list"]),
        ("list(map(str, filter(None, [0, 1])))", ["1"]),
        ("```python\n1 + 1\n```", 2),
        ("s = '''\n```python\nx\n```\n'''\ns.count('```')", 2),
        ("    rows = await list_issues()\n    len(rows)", 5),
        ("from __future__ import annotations\nimport json, asyncio\njson.dumps([1])", "[1]"),
        ("next(i['key'] for i in await list_issues() if i['votes'] > 3)", "WEB-4"),
        ("slow_read = await list_issues()\nlen(slow_read)", 5),
        ("list_issues = await list_issues()\nlen(list_issues)", 5),
        ("for read_report in await list_issues():\n    pass\nread_report['key']", "WEB-5"),
        ("tools = [list_issues]\nlen(await tools[0]())", 5),
        ("async def main():\n    return len(await list_issues())\nawait main()", 5),
        ("(await read_report(name='q'))[1]", 2),
        ("{'at': datetime.date(2026, 1, 2), 'set': {1}, 'pair': (1, 2)}",
         {"at": "2026-01-02", "set": [1], "pair": [1, 2]}),
    ],
)  # fmt: skip
async def test_a_program_returns_its_last_value(
    board: Pegboard, program: str, value: object
) -> None:
    result = await board.run_code(program)
    assert not result.is_error, result.wire
    assert result.structured == (value if isinstance(value, dict) else {"result": value})


@pytest.mark.parametrize(
    ("program", "expected"),
    [
        ("await list_isues()", "list_issues(status?: str"),
        ("await list_issues(state='x')", "has no parameter `state`"),
        ("rows = list_issues()\nlen(await list_issues()) + len(rows)", "await"),
        ("(await list_issues())[0]['kye']", "(keys: key, title, votes)"),
        (
            "await add_comment(issue='WEB-1', body='b')",
            "Use run_write_code for add_comment",
        ),
        ("const rows = await list_issues();", "Programs are Python"),
        ("curl http://x | jq .", "Programs are Python"),
        ("class A(dict): pass", "Write plain functions and dicts"),
        ("import numpy", "numpy"),
        ("x" * 40_000, "at most 32000"),
        ("1 / 0", "Line 1: ZeroDivisionError"),
    ],
)
async def test_nothing_runs_when_a_program_is_wrong(
    board: Pegboard, tracker: Tracker, program: str, expected: str
) -> None:
    result = await board.run_code(program)
    assert result.is_error
    assert result.content[0]["text"].startswith("Nothing ran.")
    assert expected in result.content[0]["text"]
    assert result.structured["ran"] == "nothing"
    assert tracker.done == []


@pytest.mark.parametrize(
    ("program", "instead"),
    [
        ("async def main():\n    return await list_issues()\nmain()", "line 3: `await` is missing"),
        ("r = await list_issues()\nlist_issues()\nr", "line 2: `await` is missing"),
        ("import statistics\nstatistics.mean([1])", "sum(x) / len(x)"),
        ("import requests\nrequests.get('http://x')", "nothing but tools"),
        ("from operator import itemgetter", "Write a lambda"),
        ("import string", "Modules: asyncio, base64"),
        ("await call_tool('list_issues', {})", "Call a tool by its own name"),
        ("await tools.list_issues()", "Call a tool by its own name"),
        ("async for row in list_issues():\n    print(row)", "for row in await"),
        ("asyncio.create_task(list_issues())", "asyncio.gather"),
        ("sem = asyncio.Semaphore(3)", "is limited for you"),
        ("await asyncio.wait_for(list_issues(), 5)", "a timeout of its own"),
        ("with open('/etc/passwd') as file:\n    file.read()", "nothing but tools"),
        ("d = {'a': 1}\ndel d['a']", "d.pop(key)"),
        ("def f():\n    yield 1\nlist(f())", "Collect the values in a list"),
        ("datetime.datetime.utcnow()", "datetime.now(timezone.utc)"),
        ("json.dumps(datetime.date(2026, 1, 1), default=str)", ".isoformat()"),
        ("[row.key for row in await list_issues()]", 'write ["key"], not .key'),
        ("await read_report('q')", "keyword arguments only\n  read_report(name: str)"),
        ("Here it is:\n```python\n1\n```", "Send the program alone"),
        ("import sys\nsys.exit(0)", "Use return"),
    ],
)
async def test_what_programs_lack_is_answered_with_what_to_write(
    board: Pegboard, tracker: Tracker, program: str, instead: str
) -> None:
    result = await board.run_code(program)
    assert result.structured["ran"] == "nothing"
    assert instead in result.content[0]["text"]
    assert tracker.done == []


async def test_a_failure_names_the_line_and_similar_keys(board: Pegboard) -> None:
    result = await board.run_code("rows = await read_report(name='q')\nd = {}\nd['q']")
    assert result.structured["ran"] == "stopped"
    assert result.structured["line"] == 3
    assert result.structured["done"] == [{"tool": "read_report", "times": 1}]


async def test_under_strict_risk_an_inferred_reader_is_refused(make_board: MakeBoard) -> None:
    program = "await read_report(name='q')"
    assert not (await make_board().run_code(program)).is_error
    refused = await make_board(strict_risk=True).run_code(program)
    assert "not declared read-only" in refused.content[0]["text"]


async def test_a_hidden_tool_does_not_exist(make_board: MakeBoard) -> None:
    rule = Rule(effect="deny", tools=("read_report",))
    board = make_board(policy=Policy((rule,), default="allow"))
    for program in ("await read_report(name='q')", "await read_reprt(name='q')"):
        text = (await board.run_code(program, caller=Caller("ada"))).content[0]["text"]
        assert "is not defined" in text
        assert "report(name" not in text


@pytest.mark.parametrize(
    ("program", "limit"),
    [
        (BUSY, "compute_time"),
        ("rows = []\nwhile True:\n    rows.append('x' * 10000)", "memory_bytes"),
        ("for n in range(10**6):\n    await list_issues()", "more than 20 calls"),
        ("time.sleep(60)", "sleep_time"),
        ("while True:\n    print('x' * 1000)", "print_bytes"),
        ("await slow_read(seconds=60)", "total_time"),
        ("'x' * 200_000", "value_bytes"),
    ],
)
async def test_a_limit_ends_a_program(make_board: MakeBoard, program: str, limit: str) -> None:
    code = CodeOptions(
        compute_time=0.5, total_time=2, max_calls=20, value_bytes=100_000, sleep_time=0.5
    )
    began = time.perf_counter()
    result = await make_board(code=code).run_code(program)
    assert limit in result.content[0]["text"]
    assert time.perf_counter() - began < 8


async def test_the_sizes_of_arguments_and_results_are_limited(make_board: MakeBoard) -> None:
    board = make_board(code=CodeOptions(value_bytes=1_000))
    program = "s = 'x'\nwhile True:\n    s = (await add_comment(issue='WEB-1', body=s + s))['body']"
    result = await board.run_code(program, write=True)
    assert "value_bytes is 1000" in result.content[0]["text"]


async def test_prints_come_back_up_to_their_limit(make_board: MakeBoard) -> None:
    board = make_board(code=CodeOptions(print_bytes=10))
    result = await board.run_code("print('a' * 50)\n1")
    assert result.content[1]["text"] == f"Printed:\n{'a' * 10}\n(41 more characters)"


@pytest.mark.parametrize(
    ("program", "blocks"),
    [
        ("print('seen')", ["Printed:\nseen"]),
        ("''", ['""']),
        ("None", ["Finished; its value is None."]),
        ("x = 1", ["Finished; its value is None."]),
    ],
)
async def test_an_answer_is_never_empty(board: Pegboard, program: str, blocks: list[str]) -> None:
    result = await board.run_code(program)
    assert [block["text"][:28] for block in result.content] == blocks


async def test_a_value_is_kept_for_the_next_program_of_the_same_principal(board: Pegboard) -> None:
    result = await board.run_code("keep([i['key'] for i in await list_issues()])")
    handle = result.structured["result"]
    later = await board.run_code(f"len(kept('{handle}'))")
    assert later.structured == {"result": 5}
    foreign = await board.run_code(f"len(kept('{handle}'))", caller=Caller("eve"))
    assert "Unknown or expired handle" in foreign.content[0]["text"]


async def test_at_most_so_many_calls_run_at_the_same_time(
    make_board: MakeBoard, tracker: Tracker
) -> None:
    board = make_board(code=CodeOptions(max_parallel=4))
    # Different calls: the same call made twice at once runs once.
    await board.run_code("await gather(*[slow_read(seconds=0.02 + n / 1000) for n in range(12)])")
    assert tracker.most_running == 4


async def test_one_worker_runs_one_program_after_the_other(make_board: MakeBoard) -> None:
    board = make_board(code=CodeOptions(workers=1, queue=1))
    results: list[object] = []

    async def run() -> None:
        result = await board.run_code("await slow_read(seconds=0.2)")
        results.append(result.structured["result"])

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(run)
        tasks.start_soon(run)
    assert results == ["waited", "waited"]


@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="needs /proc")
def test_a_worker_outlives_the_event_loop_that_started_it(board: Pegboard) -> None:
    # The threads of an event loop end with it, and bubblewrap ends its worker with its thread.
    before = _child_processes()
    anyio.run(board.run_code, "1")
    workers = _child_processes() - before
    time.sleep(0.1)
    assert workers
    assert anyio.run(board.run_code, "2").structured == {"result": 2}
    assert _child_processes() - before == workers


def _child_processes() -> set[str]:
    tasks = Path("/proc/self/task").iterdir()
    return {child for task in tasks for child in (task / "children").read_text().split()}


async def test_a_cancelled_run_leaves_nothing_running(board: Pegboard, tracker: Tracker) -> None:
    with anyio.move_on_after(0.5):
        await board.run_code("await gather(*[slow_read(seconds=30 + n) for n in range(3)])")
    assert tracker.running == 0
    with anyio.move_on_after(0.3):
        await board.run_code("while True:\n    pass")
    assert (await board.run_code("1")).structured == {"result": 1}


async def test_calls_carry_their_run_and_the_run_is_recorded(make_board: MakeBoard) -> None:
    from dataclasses import replace

    board, observer = make_board(), RecordingObserver()
    board.parts = replace(board.parts, observers=(observer,))
    await board.run_code("await list_issues()\nlen('x')")
    started, call, finished = (
        next(e for e in observer.events if e.kind == kind)
        for kind in ("run.started", "call.finished", "run.finished")
    )
    assert call.parent == started.id == finished.id  # type: ignore[union-attr]
    assert (finished.calls, finished.ran, finished.program) == (1, "finished", None)  # type: ignore[union-attr]


def test_the_process_exits_cleanly_and_starts_no_worker_before_the_first_program(
    tmp_path: Path,
) -> None:
    script = tmp_path / "script.py"
    script.write_text(
        "import anyio, subprocess, sys\n"
        "from pegboard import Pegboard\n"
        "board = Pegboard('b', mode='code')\n"
        "async def main():\n"
        "    await board.view()\n"
        "    assert 'pydantic_monty' not in sys.modules\n"
        "    print((await board.run_code('1 + 1')).structured)\n"
        "anyio.run(main)\n"
    )
    environ = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1"}
    done = subprocess.run(
        [sys.executable, script], capture_output=True, text=True, env=environ, timeout=60
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "{'result': 2}\n", "")


async def test_without_the_extra_the_error_says_what_to_install(
    board: Pegboard, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "pydantic_monty", None)  # as if it were not installed
    with pytest.raises(ConfigError, match=r"pip install 'pegboard\[code\]'"):
        await board.run_code("1")
    with pytest.raises(ConfigError, match=r"pegboard\[code\]"):
        build_server(board)
    plain = Pegboard("plain")
    with pytest.raises(ConfigError, match=r"pegboard\[code\]"):
        build_server(plain, environ={"PEGBOARD_MODE": "code"})
    build_server(plain, environ={})
