from __future__ import annotations

import string
import time

from hypothesis import given
from hypothesis import strategies as st

from pegboard.core.calls import Caller
from pegboard.core.name_lookup import resolve
from pegboard.core.policy import ALLOW_ALL, Policy, Rule
from pegboard.core.tools import Catalog, Category, Risk, Tool, constant_definition
from pegboard.errors import ToolNotFound


def tool(name: str, server: str = "crm", category: str = "sales", risk: Risk = "read") -> Tool:
    definition = constant_definition({"type": "object"})
    return Tool(f"{server}_{name}", definition, f"{server}.{name}", server, category, risk=risk)


CATALOG = Catalog(
    [
        tool("list_leads"),
        tool("delete_lead", risk="destructive"),
        tool("create_issue", "tracker", "issues", "write"),
        tool("close_issue", "tracker", "issues", "write"),
    ],
    [Category("sales"), Category("issues"), Category("payroll", "Not loaded yet")],
)


def seen(policy: Policy, **who: object) -> set[str]:
    return {t.id for t in policy.visible(CATALOG, Caller(**who))}  # pyright: ignore[reportArgumentType]


def test_without_rules_everybody_sees_the_very_same_catalog() -> None:
    assert ALLOW_ALL.is_open
    assert ALLOW_ALL.visible(CATALOG, Caller("anybody")) is CATALOG


def test_a_rule_applies_to_its_principals_and_to_no_others() -> None:
    policy = Policy([Rule(principals=("ann",), servers=("crm",))], default="deny")
    assert seen(policy, principal="ann") == {"crm.list_leads", "crm.delete_lead"}
    assert seen(policy, principal="bob") == set()


def test_scopes_and_groups_name_people_as_principals_do() -> None:
    rules = [
        Rule(scopes=("issues:*",), categories=("issues",)),
        Rule(groups=("sales",), tools=("list_*",)),
    ]
    policy = Policy(rules, default="deny")
    by_scope = seen(policy, principal="x", scopes=frozenset({"issues:write"}))
    assert by_scope == {"tracker.create_issue", "tracker.close_issue"}
    assert seen(policy, principal="x", groups=frozenset({"sales"})) == {"crm.list_leads"}


def test_every_side_of_a_rule_must_fit() -> None:
    policy = Policy([Rule(servers=("crm",), risks=("read",))], default="deny")
    assert seen(policy) == {"crm.list_leads"}


def test_a_rule_that_denies_wins_over_all_that_allow() -> None:
    rules = [Rule(), Rule(effect="deny", risks=("destructive",)), Rule(tools=("delete_lead",))]
    assert "crm.delete_lead" not in seen(Policy(rules, default="deny"))


def test_a_denied_risk_covers_tools_whose_name_suggests_it_and_those_it_could_be() -> None:
    everything = Rule()
    without_writes = Policy([everything, Rule(effect="deny", risks=("write",))], default="deny")
    assert seen(without_writes) == {"crm.list_leads", "crm.delete_lead"}
    without_deletes = Policy([everything, Rule(effect="deny", risks=("destructive",))])
    assert seen(without_deletes) == {"crm.list_leads"}  # the risk of the writers is only inferred


def test_tools_are_named_by_shown_name_by_id_or_by_the_servers_own_name() -> None:
    for name in ("crm_list_leads", "crm.list_leads", "list_leads", "list_l?ads"):
        assert seen(Policy([Rule(tools=(name,))], default="deny")) == {"crm.list_leads"}, name


def test_a_hidden_tool_and_its_category_are_as_if_they_did_not_exist() -> None:
    policy = Policy([Rule(principals=("ann",), servers=("crm",))], default="deny")
    mine = policy.visible(CATALOG, Caller("ann"))
    assert [c.name for c in mine.categories] == ["sales"]
    errors: list[str] = []
    for name in ("tracker.create_issue", "tracker.create_isue"):
        try:
            resolve(mine, name)
        except ToolNotFound as exc:
            errors.append(exc.message.replace(name, "NAME"))
    assert len(errors) == 2
    assert errors[0] == errors[1]


def test_a_category_without_tools_is_known_only_to_those_who_may_see_such_tools() -> None:
    policy = Policy([Rule(principals=("ann",), categories=("sales", "payroll"))], default="deny")
    names = [c.name for c in policy.visible(CATALOG, Caller("ann")).categories]
    assert names == ["payroll", "sales"]
    denied = Policy([Rule(effect="deny", categories=("payroll",))])
    assert [c.name for c in denied.visible(CATALOG, Caller("ann")).categories] == [
        "issues",
        "sales",
    ]


def test_what_a_server_offers_beside_tools_needs_the_whole_server() -> None:
    rules = [Rule(groups=("all",), servers=("crm",)), Rule(groups=("some",), tools=("list_*",))]
    policy = Policy(rules, default="deny")
    assert policy.grant(Caller("x", groups=frozenset({"all"}))).allows_server("crm")
    assert not policy.grant(Caller("x", groups=frozenset({"some"}))).allows_server("crm")
    assert not policy.grant(Caller("x", groups=frozenset({"all"}))).allows_server("tracker")


def test_callers_of_the_same_rules_share_one_catalog() -> None:
    policy = Policy([Rule(groups=("g",), servers=("crm",))], default="deny")
    ann = policy.visible(CATALOG, Caller("ann", groups=frozenset({"g"})))
    assert ann is policy.visible(CATALOG, Caller("bob", groups=frozenset({"g"})))


def test_ten_thousand_rules_are_checked_in_microseconds() -> None:
    """The bound is ten times what an idle machine needs, so that a busy one passes too."""
    rules = [Rule(principals=(f"user{i}",), servers=(f"s{i % 97}", "crm")) for i in range(9_000)]
    rules += [Rule(groups=(f"team-{i}-*",), tools=(f"t{i}_*",)) for i in range(1_000)]
    policy = Policy(rules, default="deny")
    caller = Caller("user8999", groups=frozenset({"team-3-x"}))
    lead = CATALOG.tools[0]
    assert policy.allows(caller, lead)
    rounds = 2_000
    began = time.perf_counter()
    for _ in range(rounds):
        policy.allows(caller, lead)
    assert (time.perf_counter() - began) / rounds < 30e-6


names = st.text(string.ascii_lowercase + "*?", min_size=1, max_size=4)
rules = st.builds(
    Rule,
    effect=st.sampled_from(("allow", "deny")),
    principals=st.lists(names, max_size=2).map(tuple),
    groups=st.lists(names, max_size=2).map(tuple),
    servers=st.lists(names, max_size=2).map(tuple),
    tools=st.lists(names, max_size=2).map(tuple),
    risks=st.lists(st.sampled_from(("read", "write")), max_size=2).map(tuple),
)


@given(st.lists(rules, max_size=6), names, st.frozensets(names, max_size=2))
def test_compiled_rules_decide_as_the_plain_reading_of_them_does(
    given_rules: list[Rule], principal: str, groups: frozenset[str]
) -> None:
    from fnmatch import fnmatchcase

    def fits(name: str, globs: tuple[str, ...]) -> bool:
        return any(fnmatchcase(name, glob) for glob in globs)

    def applies(rule: Rule, one: Tool) -> bool:
        anybody = rule.is_for_everybody or fits(principal, rule.principals)
        if not anybody and not any(fits(g, rule.groups) for g in groups):
            return False
        if rule.servers and not fits(one.server or "", rule.servers):
            return False
        own = one.id.removeprefix(f"{one.server}.")
        if rule.tools and not any(fits(n, rule.tools) for n in (one.name, one.id, own)):
            return False
        return not rule.risks or one.risk in rule.risks

    policy = Policy(given_rules, default="deny")
    for one in CATALOG:
        applying = [r.effect for r in given_rules if applies(r, one)]
        expected = "allow" in applying and "deny" not in applying
        assert policy.allows(Caller(principal, groups=groups), one) is expected
