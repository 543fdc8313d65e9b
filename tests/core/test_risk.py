"""What a tool may do: the operator's rule, then annotations, then the name."""

from __future__ import annotations

from typing import Any

import pytest

from pegboard.core.calls import Caller
from pegboard.core.policy import Policy, Rule
from pegboard.core.risk import (
    annotated_risk,
    apply_risk_rules,
    assess_risk,
    infer_risk,
    strict_risk,
)
from pegboard.core.tools import Catalog, Tool, constant_definition

SOMEBODY = Caller("ann")


def tool(name: str, **annotations: bool) -> Tool:
    risk, source = assess_risk(name, annotations, "crm")
    return Tool(
        f"crm_{name}",
        constant_definition({"type": "object"}),
        id=f"crm.{name}",
        server="crm",
        annotations=annotations,
        risk=risk,
        risk_source=source,
    )


@pytest.mark.parametrize(
    ("annotations", "risk"),
    [
        ({"readOnlyHint": True}, "read"),
        ({"readOnlyHint": True, "destructiveHint": False}, "read"),
        ({"readOnlyHint": True, "destructiveHint": True}, "destructive"),
        ({"destructiveHint": True}, "destructive"),
        ({"readOnlyHint": False, "destructiveHint": True}, "destructive"),
        ({"destructiveHint": False}, "write"),
        ({"readOnlyHint": False, "destructiveHint": False}, "write"),
        ({"readOnlyHint": False}, None),
        ({"readOnlyHint": "yes"}, None),
        ({"idempotentHint": True}, None),
        ({}, None),
    ],
)
def test_of_two_hints_the_stricter_wins(annotations: dict[str, Any], risk: str | None) -> None:
    assert annotated_risk(annotations) == risk


@pytest.mark.parametrize(
    ("risk", "names"),
    [
        ("read", "get_issue list_issues search read-file getUser API-get-user jira_get_issue "
                 "crm_list_leads brave_web_search issue_read notion-search get_post get_order "
                 "list.items fetch describeTable slack_list_channels"),
        ("destructive", "delete_all remove_user dropTable purge-cache crm_wipe_disk message_delete "
                        "bulkDelete crm.erase clear_cache deleteUser rm"),
        ("write", "create_issue get_or_create find_and_modify mark_as_read list_and_delete "
                  "todo_list reading_list_add query_database execute_sql run_search post_search "
                  "undelete drag_drop get_and_remove frobnicate getaway listen reader 索 1 crm "
                  "resolve-library-id"),
    ],
)  # fmt: skip
def test_the_name_tells_of_plain_readers_and_plain_deleters(risk: str, names: str) -> None:
    assert {name: infer_risk(name, "crm") for name in names.split()} == dict.fromkeys(
        names.split(), risk
    )


def test_annotations_win_over_the_name_and_rules_over_both() -> None:
    said = tool("get_issue", readOnlyHint=False, destructiveHint=True)
    assert (said.risk, said.risk_source) == ("destructive", "annotated")
    ruled = apply_risk_rules(said, {"crm.get_*": "read"}, strict=True)
    assert (ruled.risk, ruled.risk_source) == ("read", "operator")
    assert (tool("get_issue").risk, tool("get_issue").risk_source) == ("read", "inferred")


def test_not_read_only_rules_out_an_inferred_read_and_leaves_the_rest_to_the_name() -> None:
    assert tool("get_issue", readOnlyHint=False).risk == "write"
    assert tool("delete_issue", readOnlyHint=False).risk == "destructive"


@pytest.mark.parametrize(
    ("name", "hints", "risk"),
    [
        ("frobnicate", {}, "destructive"),
        ("frobnicate", {"readOnlyHint": False}, "destructive"),
        ("frobnicate", {"destructiveHint": False}, "write"),
        ("get_issue", {}, "read"),
        ("delete_issue", {}, "destructive"),
        ("frobnicate", {"readOnlyHint": True}, "read"),
    ],
)
def test_strict_takes_what_nothing_tells_about_for_destructive(
    name: str, hints: dict[str, bool], risk: str
) -> None:
    assert apply_risk_rules(tool(name, **hints), {}, strict=True).risk == risk


def test_a_denial_by_risk_uses_the_strict_value_and_a_permission_does_not() -> None:
    tools = [
        tool("frobnicate"),
        tool("get_issue"),
        tool("delete_all", readOnlyHint=True),  # says one thing and is called another
        tool("update_issue", destructiveHint=False),
        tool("run_it"),
    ]
    catalog = Catalog(apply_risk_rules(t, {"crm.run_it": "write"}) for t in tools)

    def seen(policy: Policy) -> set[str]:
        return {t.own_name for t in policy.visible(catalog, SOMEBODY)}

    nobody_deletes = Policy([Rule(), Rule(effect="deny", risks=("destructive",))])
    assert seen(nobody_deletes) == {"get_issue", "update_issue", "run_it"}
    writers = Policy([Rule(risks=("write",))], default="deny")
    assert seen(writers) == {"frobnicate", "update_issue", "run_it"}


def test_the_strict_value_of_an_operators_word_is_that_word() -> None:
    ruled = apply_risk_rules(tool("delete_draft"), {"*": "write"})
    assert strict_risk(ruled) == "write"
