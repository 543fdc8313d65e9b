"""A profile shows a part of the catalog, and never more than the rules allow."""

from __future__ import annotations

import pytest
from tests.core.test_policy import CATALOG, seen

from pegboard.core.calls import Caller
from pegboard.core.policy import AccessControl, Policy, Profile, Rule
from pegboard.errors import ConfigError

PROFILES = {
    "sales": Profile(servers=("crm",)),
    "reading": Profile(tools=("crm.list_*", "tracker_close_issue")),
    "careful": Profile(exclude=("*.delete_*",)),
}


def test_a_profile_is_a_part_by_servers_by_tools_or_without_some() -> None:
    policy = Policy(profiles=PROFILES)
    assert seen(policy, profile="sales") == {"crm.list_leads", "crm.delete_lead"}
    assert seen(policy, profile="reading") == {"crm.list_leads", "tracker.close_issue"}
    assert seen(policy, profile="careful") == {t.id for t in CATALOG} - {"crm.delete_lead"}
    assert policy.visible(CATALOG, Caller()) is CATALOG, "without a choice, everything"


def test_the_configured_profile_applies_to_who_chooses_none() -> None:
    policy = Policy(profiles=PROFILES, profile="sales")
    assert seen(policy) == {"crm.list_leads", "crm.delete_lead"}
    assert seen(policy, profile="reading") == {"crm.list_leads", "tracker.close_issue"}


def test_a_profile_gives_nobody_more_than_the_rules() -> None:
    policy = Policy([Rule(effect="deny", tools=("crm.*",))], profiles=PROFILES)
    assert seen(policy, profile="sales") == set()
    only = Policy([Rule(principals=("ada",))], default="deny", profiles=PROFILES)
    assert seen(only, principal="eve", profile="careful") == set()
    assert seen(only, principal="ada", profile="sales") == {"crm.list_leads", "crm.delete_lead"}


def test_prompts_and_resources_of_a_server_outside_the_profile_are_hidden() -> None:
    access = AccessControl(Policy(profiles=PROFILES), CATALOG)
    inside, outside = Caller(profile="sales"), Caller(profile="reading")
    assert access.can_use_resources(inside, "crm")
    assert not access.can_use_resources(inside, "tracker")
    assert not access.can_use_resources(outside, "crm"), "only some of its tools are in the profile"
    assert access.can_see_server(outside, "crm")
    assert not access.can_see_server(inside, "tracker")


def test_a_profile_that_does_not_exist_shows_nothing() -> None:
    with pytest.raises(ConfigError, match="There is no profile 'nope'"):
        Policy(profiles=PROFILES).visible(CATALOG, Caller(profile="nope"))
