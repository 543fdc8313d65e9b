"""What every client is told about the server, and the frame of every answer."""

from __future__ import annotations

from tests.conformance.cases import Case, cases_of, only
from tests.conformance.clients import Transcript
from tests.conformance.scenarios import LAZY

from pegboard.core.options import MODES

EXTENSION = "io.github.pegboard/lazy-tools"
SERVER_INFO = "io.modelcontextprotocol/serverInfo"
MODERN = cases_of("eager", "stub", "index", "hierarchy", "proxy", era="modern")
LEGACY = cases_of("eager", "stub", "index", "hierarchy", "proxy", "dynamic", era="legacy")


def test_each_era_is_spoken_as_it_was_asked_for(case: Case, told: Transcript) -> None:
    if case.client == "typescript1-stdio":  # that transport does not tell
        return
    expected = "2026-07-28" if case.era == "modern" else "2025-11-25"
    assert told.info["protocolVersion"] == expected


def test_the_server_says_who_it_is(told: Transcript) -> None:
    assert told.info["serverInfo"] == {"name": "office", "version": "1.2.3"}
    assert told.info["instructions"].startswith("An office to test with.\n")


def test_the_extension_is_advertised_with_its_methods_and_modes(
    case: Case, told: Transcript
) -> None:
    place = "extensions" if case.era == "modern" else "experimental"
    settings = told.info["capabilities"][place][EXTENSION]
    assert settings["methods"] == ["tools/describe", "tools/describe_batch", "tools/manifest"]
    assert settings["modes"] == list(MODES)


def test_list_changed_is_advertised(told: Transcript) -> None:
    """Clients ignore the notification of a server that does not announce it (2025-11-25, tools)."""
    assert told.info["capabilities"]["tools"]["listChanged"] is True


@only(MODERN)
def test_a_modern_list_may_be_kept_and_is_stamped(told: Transcript) -> None:
    """2026-07-28: a list has `ttlMs` and `cacheScope`; the server may identify itself."""
    listed = told["list"].ok
    assert listed["ttlMs"] == 300_000
    assert listed["cacheScope"] == "public"
    assert listed["_meta"][SERVER_INFO] == {"name": "office", "version": "1.2.3"}


@only(MODERN)
def test_a_list_that_is_not_the_default_must_not_be_kept(told: Transcript) -> None:
    for key in ("lazy", "eager", "lazy by meta", "eager by meta"):
        assert told[key].ok["ttlMs"] == 0, key


@only([c for c in MODERN if c.client.startswith("python")])
def test_modern_answers_say_that_they_are_complete(told: Transcript) -> None:
    for key in ("list", "eager", "describe", "batch", "manifest", "direct", "alias invoke"):
        answer = told[key].ok
        assert answer["resultType"] == "complete", key
        assert answer["_meta"][SERVER_INFO]["name"] == "office", key


@only([c for c in LEGACY if c.client.startswith("typescript1")])
def test_legacy_answers_carry_nothing_of_the_modern_era(told: Transcript) -> None:
    for key in ("list", "eager", "describe", "manifest", "direct", "alias invoke"):
        answer = told[key].ok
        assert not {"resultType", "ttlMs", "cacheScope"} & set(answer), (key, answer)


def test_no_answer_poisons_the_default_list(case: Case, told: Transcript) -> None:
    """Clients cache `tools/list` by method alone, so the lazy answer must not stand in for it."""
    assert told["list again"].names == told["list"].names
    assert told["list again"].ok["tools"] == told["list"].ok["tools"]


def test_the_stub_mark_is_once_in_the_results_meta(case: Case, told: Transcript) -> None:
    assert told["lazy"].ok["_meta"][LAZY] is True
    assert told["lazy by meta"].ok["_meta"][LAZY] is True
    assert LAZY not in told["eager"].ok.get("_meta", {})
    assert (LAZY in told["list"].ok.get("_meta", {})) == (case.shown == "stub")
    assert all("_meta" not in tool for tool in told["lazy"].ok["tools"])


def test_nonsense_in_a_list_request_is_misuse(told: Transcript) -> None:
    assert '`lazy` must be true, false or "bare"' in told["lazy nonsense"].misuse["message"]
    assert "start again without one" in told["wrong cursor"].misuse["message"]
