"""Who may see and call which tools: rules, compiled once into what one caller may do.

    caller  --Policy.grant-->  CallerPermissions  --allows(tool)-->  yes or no
                               (shared by all callers to whom the same rules apply)

A rule has two sides. *Who*: any of its principals, scopes or groups; none of them given means
everybody. *What*: servers, categories, tools and risks; each that is given must match. A rule that
denies wins over any that allows; `default` decides where no rule matches.

A tool that a caller may not see is removed from the catalog before anything else reads it. So it is
not listed, not found, not described and not called, and every error about it is the error for a
tool that does not exist. A profile, the part of the catalog that a caller chose, works the same
way. Access to everything else (the dashboard and its live stream, notes about failing servers,
resources, prompts, subscriptions, tasks) is checked by `AccessControl`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import translate
from typing import Literal, NamedTuple, TypeAlias

from pegboard.core.caches import BoundedCache
from pegboard.core.calls import Caller
from pegboard.core.risk import strict_risk
from pegboard.core.tools import RISKS, Catalog, Risk, Tool
from pegboard.errors import ConfigError

Effect: TypeAlias = Literal["allow", "deny"]
_Test: TypeAlias = Callable[[str], bool]
_Who: TypeAlias = tuple[str, frozenset[str], frozenset[str], str | None]

# Cached for each policy: compiled sets of rules, and callers. For each catalog: what a set of rules
# shows of it. For each set of rules: decisions about tools.
MAX_GRANTS = 4_096
MAX_CALLERS = 65_536
_MAX_CATALOGS = 256
_MAX_DECISIONS = 100_000
_VISIBLE_MEMO = "policy"
_SERVERS_MEMO = "policy/servers"


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """One statement of a policy; all names are globs."""

    effect: Effect = "allow"
    principals: tuple[str, ...] = ()
    scopes: tuple[str, ...] = ()
    groups: tuple[str, ...] = ()
    servers: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    tools: tuple[str, ...] = ()
    """Matched against the name that clients see, the id (`server.tool`) and the server's own name.

    An own name means that tool of every server, unless `servers` says which. A rule that allows
    ignores an own name that could be read as a tool of another server.
    """
    risks: tuple[Risk, ...] = ()
    """What tools may do. A rule that denies counts a tool of unknown risk as destructive."""

    @property
    def is_for_everybody(self) -> bool:
        return not (self.principals or self.scopes or self.groups)


@dataclass(frozen=True, slots=True, kw_only=True)
class Profile:
    """A named part of the catalog; all names are globs, as in a `Rule`."""

    servers: tuple[str, ...] = ()
    tools: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()

    def rules(self) -> tuple[Rule, ...]:
        """The profile as rules for everybody, where nothing else is allowed."""
        shown = Rule(servers=self.servers, tools=self.tools)
        hidden = Rule(effect="deny", tools=self.exclude)
        return (shown, hidden) if self.exclude else (shown,)


class _ToolKey(NamedTuple):
    """What rules can match of a tool: also the key under which a decision is cached."""

    server: str
    category: str
    name: str
    tool_id: str
    bare: str
    risk: Risk
    strict_risk: Risk

    @property
    def own_name(self) -> str:
        return self.tool_id.removeprefix(f"{self.server}.") if self.server else self.name


class Policy:
    """Rules as one object that decides in microseconds, however many rules there are."""

    def __init__(
        self,
        rules: Iterable[Rule] = (),
        *,
        default: Effect = "allow",
        profiles: Mapping[str, Profile] | None = None,
        profile: str | None = None,
    ) -> None:
        """Compile the rules.

        Args:
            rules: The rules; their order does not matter.
            default: What applies where no rule matches.
            profiles: The parts of the catalog that callers can choose.
            profile: The part that callers see who choose none; the whole catalog by default.
        """
        self.rules = tuple(rules)
        self.default: Effect = default
        self.profiles = dict(profiles or {})
        self.profile = profile
        self._profile_grants = {
            name: CallerPermissions(chosen.rules(), "deny")
            for name, chosen in self.profiles.items()
        }
        # A request then looks up its names instead of testing every rule.
        self._everybody = [i for i, rule in enumerate(self.rules) if rule.is_for_everybody]
        self._principals = _RuleIndex(rule.principals for rule in self.rules)
        self._scopes = _RuleIndex(rule.scopes for rule in self.rules)
        self._groups = _RuleIndex(rule.groups for rule in self.rules)
        self._grants: BoundedCache[tuple[tuple[int, ...], str | None], CallerPermissions] = (
            BoundedCache(MAX_GRANTS)
        )
        self._callers: BoundedCache[_Who, CallerPermissions] = BoundedCache(MAX_CALLERS)

    @property
    def is_open(self) -> bool:
        """Whether everybody may do everything."""
        return self.default == "allow" and not self.rules and not self.profiles

    def grant(self, caller: Caller) -> CallerPermissions:
        """What this caller may do."""
        profile = caller.profile or self.profile
        who = (caller.principal, caller.scopes, caller.groups, profile)
        grant = self._callers.get(who)
        if grant is None:
            if profile is not None and profile not in self._profile_grants:
                known = ", ".join(self.profiles) or "none"
                raise ConfigError(
                    f"There is no profile {profile!r}. Profiles: {known}.", profile=profile
                )
            rules = {
                *self._everybody,
                *self._principals.matching((caller.principal,)),
                *self._scopes.matching(caller.scopes),
                *self._groups.matching(caller.groups),
            }
            # Many callers share a set of rules, and with it what was compiled and decided for it.
            key = (tuple(sorted(rules)), profile)
            grant = self._grants.get(key) or self._grants.put(
                key,
                CallerPermissions(
                    [self.rules[i] for i in key[0]],
                    self.default,
                    within=None if profile is None else self._profile_grants[profile],
                ),
            )
            self._callers.put(who, grant)
        return grant

    def allows(self, caller: Caller, tool: Tool) -> bool:
        """Whether this caller may see and call this tool."""
        return self.is_open or self.grant(caller).allows(tool)

    def visible(self, catalog: Catalog, caller: Caller) -> Catalog:
        """The catalog as this caller sees it; the same object for callers of the same rules."""
        if self.is_open:
            return catalog
        grant = self.grant(caller)
        cache: BoundedCache[CallerPermissions, Catalog] = catalog.memo.setdefault(
            _VISIBLE_MEMO, BoundedCache(_MAX_CATALOGS)
        )
        cached = cache.get(grant)
        if cached is not None:
            return cached
        visible = catalog.only(grant.allows)
        with_tools = {tool.category for tool in catalog}
        with_visible_tools = {tool.category for tool in visible}
        # A category whose tools are all hidden is hidden too. One without any tools yet (its loader
        # has not run) is shown to those who may know of it.
        categories = [
            c
            for c in catalog.categories
            if c.name in with_visible_tools
            or (c.name not in with_tools and grant.allows_group(c.name))
        ]
        if visible is not catalog or len(categories) != len(catalog.categories):
            visible = Catalog(visible, categories)
        return cache.put(grant, visible)


class CallerPermissions:
    """What the rules that apply to a caller let them see and call."""

    __slots__ = ("_allow", "_decisions", "_default", "_deny", "_within")

    def __init__(
        self, rules: Sequence[Rule], default: Effect, *, within: CallerPermissions | None = None
    ) -> None:
        self._within = within
        self._allow = [_Target(rule) for rule in rules if rule.effect == "allow"]
        self._deny = [_Target(rule) for rule in rules if rule.effect == "deny"]
        self._default = default == "allow"
        self._decisions: dict[_ToolKey, bool] = {}

    def allows(self, tool: Tool) -> bool:
        """Whether they may see and call this tool."""
        what = _ToolKey(
            server=tool.server or "",
            category=tool.category or "",
            name=tool.name,
            tool_id=tool.id,
            bare=tool.bare or "",
            risk=tool.risk,
            strict_risk=strict_risk(tool),
        )
        decision = self._decisions.get(what)
        if decision is None:
            is_denied = any(target.matches(what) for target in self._deny)
            decision = (
                not is_denied
                and (self._default or any(target.matches(what) for target in self._allow))
                and (self._within is None or self._within.allows(tool))
            )
            # Catalogs change in whole; a full cache is mostly about tools that are gone.
            if len(self._decisions) >= _MAX_DECISIONS:
                self._decisions.clear()
            self._decisions[what] = decision
        return decision

    def allows_server(self, server: str) -> bool:
        """Whether they may use what a server offers besides tools: its prompts and resources.

        They may if a rule gives them the whole server, without naming tools, categories or risks.
        """
        if self._within is not None and not self._within.allows_server(server):
            return False
        if any(target.is_whole and target.servers(server) for target in self._deny):
            return False
        if any(target.is_whole and target.servers(server) for target in self._allow):
            return True
        return self._default

    def allows_group(self, name: str) -> bool:
        """Whether they may know of a category or server whose tools are not loaded yet."""
        if self._within is not None and not self._within.allows_group(name):
            return False
        # A denial of some tools leaves others, so it does not hide the group.
        if any(target.is_about(name) and not target.is_partial for target in self._deny):
            return False
        return self._default or any(target.reveals(name) for target in self._allow)


class _Target:
    """The *what* side of a rule, compiled."""

    def __init__(self, rule: Rule) -> None:
        self.servers = _any_of(rule.servers)
        self.categories = _any_of(rule.categories)
        self.tools = _any_of(rule.tools)
        self.risks = frozenset(rule.risks or RISKS)
        self._denies = rule.effect == "deny"
        self._groups = [_any_of(names) for names in (rule.servers, rule.categories) if names]
        self.is_partial = bool(rule.tools or rule.risks)
        self.is_whole = not (rule.categories or self.is_partial)

    def matches(self, what: _ToolKey) -> bool:
        # In doubt a tool is riskier for a denial, and not safer for a permission. A denial of
        # `write` covers a tool whose name suggests `write`, although it counts as destructive too.
        if what.risk not in self.risks and not (self._denies and what.strict_risk in self.risks):
            return False
        if not self.servers(what.server) or not self.categories(what.category):
            return False
        # A server chooses the own names of its tools. So an own name may deny a tool something, but
        # must not give it what a rule means for another server's tool.
        own = what.own_name if self._denies else what.bare or what.name
        return self.tools(what.name) or self.tools(what.tool_id) or self.tools(own)

    def is_about(self, group: str) -> bool:
        """Whether tools of this category or server could be meant."""
        return not self._groups or any(matches(group) for matches in self._groups)

    def reveals(self, group: str) -> bool:
        """Whether a caller with this rule may know that a category or server exists.

        A rule that names only tools or risks may match nothing there, so it reveals no name.
        """
        return self.is_about(group) and (bool(self._groups) or not self.is_partial)


class _RuleIndex:
    """Which rules name a principal, scope or group: exact names by dictionary, globs in turn."""

    def __init__(self, patterns_of_rules: Iterable[tuple[str, ...]]) -> None:
        self._exact: dict[str, list[int]] = {}
        self._globs: dict[str, list[int]] = {}
        for index, patterns in enumerate(patterns_of_rules):
            for pattern in patterns:
                table = self._globs if _is_glob(pattern) else self._exact
                table.setdefault(pattern, []).append(index)
        self._tests = [(_any_of((glob,)), rules) for glob, rules in self._globs.items()]

    def matching(self, names: Iterable[str]) -> set[int]:
        """The rules that name one of these."""
        found: set[int] = set()
        for name in names:
            found.update(self._exact.get(name, ()))
            for matches, rules in self._tests:
                if matches(name):
                    found.update(rules)
        return found


def _any_of(patterns: tuple[str, ...]) -> _Test:
    """A test whether a name matches one of the globs; every name does where there are none."""
    if not patterns or "*" in patterns:
        return lambda name: True
    exact = frozenset(p for p in patterns if not _is_glob(p))
    globs = [p for p in patterns if _is_glob(p)]
    if not globs:
        return exact.__contains__
    match = re.compile("|".join(translate(p) for p in globs)).match
    return lambda name: name in exact or match(name) is not None


def _is_glob(pattern: str) -> bool:
    return any(character in pattern for character in "*?[")


ALLOW_ALL = Policy()
"""The policy of a board that has none."""


@dataclass(frozen=True, slots=True)
class AccessControl:
    """The current rules, and the tools that they are about.

    Everything that is not a tool definition is checked here, so that no other place has rules of
    its own.
    """

    policy: Policy = ALLOW_ALL
    catalog: Catalog = field(default_factory=lambda: Catalog(()))

    def can_see_tool(self, caller: Caller, tool_id: str) -> bool:
        """Whether they may know of a tool, by its id."""
        if self.policy.is_open:
            return True
        return self.policy.visible(self.catalog, caller).get(tool_id) is not None

    def can_see_server(self, caller: Caller, name: str) -> bool:
        """Whether they may know that a server exists: they see one of its tools.

        If its tools are not known yet, the rules about the whole server decide.
        """
        if self.policy.is_open:
            return True
        if name in _servers(self.catalog):
            return name in _servers(self.policy.visible(self.catalog, caller))
        return self.policy.grant(caller).allows_group(name)

    def can_use_resources(self, caller: Caller, server: str) -> bool:
        """Whether they may use what a server offers besides tools: resources and prompts."""
        return self.policy.is_open or self.policy.grant(caller).allows_server(server)


def _servers(catalog: Catalog) -> frozenset[str]:
    """The servers that have tools in a catalog; catalogs are immutable, so found once for each."""
    found: frozenset[str] | None = catalog.memo.get(_SERVERS_MEMO)
    if found is None:
        found = frozenset(tool.server for tool in catalog if tool.server is not None)
        catalog.memo[_SERVERS_MEMO] = found
    return found
