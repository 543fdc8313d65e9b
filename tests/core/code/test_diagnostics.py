"""What the checker's findings mean: certain mistakes refuse a program, doubts do not."""

from __future__ import annotations

import time
from typing import Any

import pytest
from tests.core.code.conftest import Check

from pegboard.core.code.diagnostics import Mistake, parse_diagnostics
from pegboard.core.code.python_hints import is_other_language
from pegboard.core.code.stubs import Stubs, ToolTypes, build_stubs
from pegboard.programs.check import unwrap_source

TEXT = {"type": "string"}
ISSUE = {
    "type": "object",
    "properties": {
        **{"key": TEXT, "assignee": {"type": ["string", "null"]}},
        **{"points": {"type": ["integer", "null"]}},
    },
    "required": ["key", "assignee", "points"],
}
ISSUES = {
    "type": "object",
    "properties": {"issues": {"type": "array", "items": ISSUE}, "total": {"type": "integer"}},
    "required": ["issues", "total"],
}
FILTERS = {
    "properties": {
        **{"status": {"enum": ["open", "done"]}, "limit": {"type": "integer"}},
        **{"filter": {"type": "object", "properties": {"label": TEXT}, "required": ["label"]}},
    }
}
ONE = {"properties": {"issue": TEXT}, "required": ["issue"]}


def tools(is_learned: bool = False) -> Stubs:
    return build_stubs(
        [
            ToolTypes("list_issues", FILTERS, ISSUES, is_learned),
            ToolTypes("get_issue", ONE, ISSUE, is_learned),
            ToolTypes("find", ONE, {"anyOf": [ISSUES, ISSUE]}),
            ToolTypes("gh.get_issue", ONE, ISSUE),
            ToolTypes("open_map", {}, {"properties": {"a": TEXT}, "additionalProperties": True}),
        ],
        is_async=True,
    )


def mistakes(check: Check, code: str, stubs: Stubs | None = None) -> list[Mistake]:
    stubs = stubs or tools()
    return parse_diagnostics(check(code, stubs.text), code, stubs)


CERTAIN: list[tuple[str, str, dict[str, Any]]] = [
    ("await lst_issues()", "`lst_issues` is not defined", {"unknown": "lst_issues"}),
    (
        "await gh.get_isue(issue='a')",
        "`gh.get_isue` is not defined",
        {"unknown": "gh.get_isue"},
    ),
    (
        "await list_issues(statu='open')",
        "list_issues has no parameter `statu`",
        {"tool": "list_issues"},
    ),
    ("await gh.get_issue()", "gh.get_issue needs `issue`", {"tool": "gh.get_issue"}),
    ("await get_issue('a')", "get_issue takes keyword arguments only", {"tool": "get_issue"}),
    (
        "await list_issues(status='opn')",
        'status=\'opn\': expected "open"|"done", not "opn"',
        {"tool": "list_issues"},
    ),
    (
        "r = await list_issues()\nawait get_issue(issue=r['issues'][0])",
        "issue=r['issues'][0]: expected str, not dict",
        {"tool": "get_issue"},
    ),
    ("(await list_issues())['totl']", 'no key "totl" (keys: issues, total)', {}),
    (
        "[i['kye'] for i in (await list_issues())['issues']]",
        'no key "kye" (keys: key, assignee, points)',
        {},
    ),
    (
        "rows = (await list_issues())['issues']\nsorted(rows, key=lambda i: i['kye'])",
        'no key "kye" (keys: key, assignee, points)',
        {},
    ),
    (
        "(await find(issue='a'))['nope']",
        'no key "nope" (keys: key, assignee, points)',
        {},
    ),
    ("(await list_issues()).total", 'results are dicts: write ["total"], not .total', {}),
    ("(await list_issues())['issues'].key", "list[dict] has no attribute `key`", {}),
    (
        "(await list_issues())['issues']['key']",
        'a list has no key "key": take one of its items first',
        {},
    ),
    ("(await list_issues())[0]", "a dict, not a list (keys: issues, total)", {}),
    ("list_issues()['total']\nawait find(issue='a')", "`await` is missing in front of a call", {}),
    (
        "for i in list_issues():\n    await find(issue=i)",
        "`await` is missing in front of a call",
        {},
    ),
    ("await list_issues(filter={'lable': 'x'})", 'no key "lable" (keys: label)', {}),
    (
        "n = set()\nn.update(i['kye'] for i in (await list_issues())['issues'])",
        'no key "kye" (keys: key, assignee, points)',
        {},
    ),
    ("await list_issues(filter={})", "Missing required key 'label'", {}),
]


@pytest.mark.parametrize(("code", "message", "data"), CERTAIN)
def test_certain_mistakes_say_what_is_wrong(
    code: str, message: str, data: dict[str, Any], check: Check
) -> None:
    found = {mistake.message: mistake for mistake in mistakes(check, code) if mistake.certain}
    assert message in found
    for name, value in data.items():
        assert getattr(found[message], name) == value


def test_a_text_that_is_not_python_has_one_mistake(check: Check) -> None:
    for code in ("const r = await list_issues({});", "curl http://x | jq .", "x = = 3"):
        found = mistakes(check, code)
        assert [mistake.certain for mistake in found] == [True]


def test_what_a_module_lacks_is_answered_with_what_to_write(check: Check) -> None:
    found = mistakes(check, "import asyncio\nasyncio.create_task(list_issues())")
    assert "create_task is not supported. Use `await asyncio.gather(...)`" in found[0].message


FINE = [
    "return (await list_issues())['total']",
    "for s in ['open', 'done']:\n    await list_issues(status=s)",
    "r = await get_issue(issue='a')\nawait list_issues(status=r['key'])",
    "wanted = {'status': 'open'}\nawait list_issues(**wanted)",
    "wanted = {'label': 'x'}\nawait list_issues(filter=wanted)",
    "await list_issues(limit='5')",
    "await list_issues(limit=None, status=None)",
    "n = (await list_issues())['total'] / 2\nawait list_issues(limit=n)",
    "[await get_issue(issue=i['assignee']) for i in (await list_issues())['issues']]",
    "sorted((await list_issues())['issues'], key=lambda i: i['points'])",
    "sum(i['points'] for i in (await list_issues())['issues'])",
    "(await list_issues())['issues'][0]['assignee'].lower()",
    "best = None\nfor i in (await list_issues())['issues']:\n    best = i\nbest['key']",
    "rows = (await list_issues())['issues']\nfor i in rows:\n    i['age'] = 3\nrows[0]['age']",
    "r = await get_issue(issue='a')\nr.update({'age': 3})\nr['age']",
    "r = await get_issue(issue='a')\nr.update(age=3)\nr['age']",
    "r = await get_issue(issue='a')\nr |= {'age': 3}\nr['age']",
    "r = await get_issue(issue='a')\nr.setdefault('age', 3)\nr['age']",
    "r = await find(issue='a')\nr['issues']",
    "(await open_map())['anything']",
    "key = 'total'\n(await list_issues())[key]",
]


@pytest.mark.parametrize("code", FINE)
def test_programs_that_may_well_run_are_not_refused(code: str, check: Check) -> None:
    assert [mistake for mistake in mistakes(check, code) if mistake.certain] == []


def test_what_only_earlier_results_say_is_marked(check: Check) -> None:
    code = "(await list_issues())['totl']\nawait list_issues(statu=1)"
    found = {mistake.line: mistake.learned for mistake in mistakes(check, code, tools(True))}
    assert found == {1: True, 2: False}


def test_programs_with_other_letters_have_the_right_lines(check: Check) -> None:
    code = "größe = 'é'  # 漢字\nr = await get_issue(issue='é')\n'éé' + r['kye']"
    assert [mistake.line for mistake in mistakes(check, code)] == [3]


@pytest.mark.parametrize(
    "text",
    [
        "",
        "nonsense",
        "main.py:9:9: error[x] y",
        'main.py:1:1: error[invalid-key] Unknown key "a" for TypedDict `gone`',
    ],
)
def test_any_text_of_the_checker_is_read(text: str) -> None:
    assert len(parse_diagnostics(text, "1", tools())) <= 1


def test_a_program_of_empty_lines_is_read_within_a_second() -> None:
    began = time.process_time()
    assert not is_other_language("\n" * 30_000 + "x")
    assert is_other_language("\n" * 30_000 + "  const x = 1")
    fenced = "```\n" + " " * 300_000 + "x"
    assert unwrap_source(fenced) == fenced
    assert time.process_time() - began < 1
