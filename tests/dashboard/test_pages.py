"""What the pages show to whom, and what they let them change."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from typing import Any

import pytest
from starlette.testclient import TestClient
from tests.boards import office_board
from tests.dashboard.boards import ada_or_bob, csrf_token_in, large_board, servers, visit
from tests.observe.samples import finished

from pegboard import Pegboard
from pegboard.core.calls import Caller
from pegboard.core.events import CallRejected, event_to_json
from pegboard.dashboard import Html, Section, Viewer, tag
from pegboard.errors import PegboardError

PAGES = ("/", "/ui/tools", "/ui/tools?q=close+a+bug", "/ui/tool?id=create_issue", "/ui/calls")


@pytest.fixture
def board() -> Pegboard:
    return office_board()


@pytest.fixture
def client(board: Pegboard) -> TestClient:
    return visit(board)


def signed_in(board: Pegboard, key: str) -> TestClient:
    client = visit(board, identify=ada_or_bob)
    assert client.post("/ui/enter", data={"token": key}).url.path == "/"
    return client


class Outline(HTMLParser):
    """Elements of a page that have to fit together."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.ids: list[str] = []
        self.labels: set[str] = set()
        self.fields: set[str] = set()
        self.landmarks: list[str] = []
        self.headings: list[int] = []
        self.inline: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        self.ids += [given["id"] or ""] if "id" in given else []
        self.labels |= {given["for"] or ""} if tag == "label" else set()
        if tag in ("input", "select") and given.get("type") != "hidden":
            self.fields.add(given.get("id") or "")
        self.landmarks += [tag] if tag in ("header", "main", "nav") else []
        self.headings += [int(tag[1])] if re.fullmatch("h[1-6]", tag) else []
        self.inline += [n for n in given if n == "style" or n.startswith("on")]
        self.inline += [tag] if tag == "style" or (tag == "script" and "src" not in given) else []


@pytest.mark.parametrize("path", PAGES)
def test_a_page_can_be_read_by_a_screen_reader(client: TestClient, path: str) -> None:
    outline = Outline(client.get(path).text)
    assert {"header", "nav", "main"} <= set(outline.landmarks)
    assert outline.fields <= outline.labels
    assert outline.headings.count(1) == 1
    assert len(outline.ids) == len(set(outline.ids))


@pytest.mark.parametrize("path", PAGES)
def test_a_page_needs_nothing_that_its_policy_forbids(client: TestClient, path: str) -> None:
    answer = client.get(path)
    policy = answer.headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    assert Outline(answer.text).inline == []
    assert not re.search(r'(src|href)="(https?:)?//', answer.text)
    assert answer.headers["cache-control"] == "no-store"


def test_what_a_server_says_of_its_tools_is_shown_as_text() -> None:
    board = Pegboard("<b>board</b>")

    @board.tool(summary="<script>alert(1)</script>")
    def sly(q: str = '"><img src=x>') -> str:
        """<img src=x onerror=alert(1)>"""
        return q

    client = visit(board)
    for path in ("/", "/ui/tools", "/ui/tool?id=sly", '/ui/tools?q="><script>'):
        text = client.get(path).text
        assert "<script>" not in text
        assert "<img src=x" not in text
        assert "<b>" not in text


def test_the_list_is_paged_and_filtered_by_the_server() -> None:
    client = visit(large_board(500))
    first = client.get("/ui/tools").text
    assert first.count("<li><h3>") == 50
    assert "500 tools, page 1 of 10" in first
    destructive = client.get("/ui/tools/list?risk=destructive&page=2").text
    assert "100 tools, page 2 of 2" in destructive
    assert destructive.count("destructive</span>") == 50


def test_a_board_without_tools_and_calls_says_so() -> None:
    client = visit(Pegboard("empty"))
    assert "There are no tools yet." in client.get("/ui/tools").text
    overview = client.get("/").text
    assert "no call has finished yet" in overview
    assert "0.0 ms" not in overview


@pytest.mark.parametrize("query", ["page=0", "page=9999999", "page=x", "risk=all", "page=٣"])
def test_an_address_that_makes_no_sense_shows_the_list(client: TestClient, query: str) -> None:
    answer = client.get(f"/ui/tools?{query}")
    assert answer.status_code == 200
    assert "list_issues" in answer.text


def test_a_search_says_why_each_tool_was_found(client: TestClient) -> None:
    found = client.get("/ui/tools/list", params={"q": "file a bug"}).text
    assert found.index("create_issue") < found.index("</li>")
    assert 'class="badge why"' in found
    assert re.search(r'<meter value="0\.\d+', found)


def test_a_search_that_fits_nothing_says_so(client: TestClient) -> None:
    found = client.get("/ui/tools/list", params={"q": "zzzz qqqq"}).text
    assert "No tool matches." in found


def test_a_tool_shows_what_it_takes_and_what_it_is_related_to(client: TestClient) -> None:
    text = client.get("/ui/tool?id=create_issue").text
    assert "create_issue(project: str, title: str" in text
    assert "/ui/tool?id=get_issue" in text
    assert client.get("/ui/tool?id=create_isue").status_code == 404


@pytest.mark.anyio
async def test_calls_are_counted_and_shown(board: Pegboard) -> None:
    await board.call("echo", {"text": "hello"})
    with pytest.raises(PegboardError):
        await board.call("get_issue", {"id": "x"})
    client = visit(board)
    text = client.get("/ui/calls").text
    assert "invalid_arguments" in text
    assert "/ui/tool?id=echo" in text
    assert "1 failed" in client.get("/").text


def test_refused_calls_are_counted_apart_and_have_no_percentile(board: Pegboard) -> None:
    live = board.parts.live
    live.record(finished(tool="echo", outcome="refused", error="not_permitted", upstream=None))
    live.record(CallRejected(at=1.0, name="guess", error="unknown_tool", arguments=""))
    client = visit(board)
    text = client.get("/").text
    assert ">2 refused</a>" in text
    assert "no call has finished yet" in text
    facts = client.get("/ui/tool?id=echo").text
    assert "<dt>95th percentile</dt><dd>–</dd>" in facts
    assert "<dt>Failed</dt><dd>0</dd>" in facts
    assert "<dt>Refused</dt><dd>1</dd>" in facts


def test_an_address_without_a_page_leads_back(client: TestClient) -> None:
    missing = client.get("/ui/nothing")
    assert missing.status_code == 404
    assert "Page not found" in missing.text
    assert "Back to the overview" in missing.text


def test_servers_are_shown_with_their_state_and_what_is_wrong() -> None:
    text = visit(large_board(20), servers=servers).get("/").text
    assert "the command was not found. Retry in 30 s." in text
    assert '<span class="badge good">running</span>' in text


def test_a_tool_is_switched_off_and_on(board: Pegboard, client: TestClient) -> None:
    form = {"csrf_token": csrf_token_in(client.get("/ui/tool?id=echo")), "id": "echo"}
    off = client.post("/ui/tool/switch", data={**form, "enabled": ""})
    assert "Enable" in off.text
    assert "echo" not in [t.name for t in board.tools()]
    client.post("/ui/tool/switch", data={**form, "enabled": "1"})
    assert "echo" in [t.name for t in board.tools()]


@pytest.mark.parametrize("proof", ["", "0" * 64, "é"])
def test_a_form_without_a_valid_csrf_token_changes_nothing(
    board: Pegboard, client: TestClient, proof: str
) -> None:
    client.get("/ui/tool?id=echo")
    answer = client.post("/ui/tool/switch", data={"csrf_token": proof, "id": "echo", "enabled": ""})
    assert answer.status_code == 403
    assert "echo" in [t.name for t in board.tools()]


def test_a_csrf_token_is_of_no_use_to_another_browser(board: Pegboard, client: TestClient) -> None:
    proof = csrf_token_in(client.get("/ui/tool?id=echo"))
    other = visit(board)
    other.get("/ui/tool?id=echo")
    answer = other.post("/ui/tool/switch", data={"csrf_token": proof, "id": "echo", "enabled": ""})
    assert answer.status_code == 403


def test_a_form_from_another_site_is_refused(client: TestClient) -> None:
    form = {
        "csrf_token": csrf_token_in(client.get("/ui/tool?id=echo")),
        "id": "echo",
        "enabled": "",
    }
    origin = {"Origin": "https://evil.example"}
    assert client.post("/ui/tool/switch", data=form, headers=origin).status_code == 403


def test_a_form_of_a_hundred_kilobytes_is_refused(client: TestClient) -> None:
    answer = client.post("/ui/tool/switch", data={"id": "x" * 100_000})
    assert answer.status_code == 403


@pytest.mark.parametrize("path", [*PAGES, "/ui/tools/list", "/ui/live?parts=statistics"])
def test_nobody_sees_anything_without_a_token(board: Pegboard, path: str) -> None:
    answer = visit(board, identify=ada_or_bob).get(path)
    assert answer.status_code == 401
    assert "create_issue" not in answer.text


def test_a_wrong_token_is_refused(board: Pegboard) -> None:
    answer = visit(board, identify=ada_or_bob).post("/ui/enter", data={"token": "guess"})
    assert answer.status_code == 401
    assert "is not valid" in answer.text
    assert "set-cookie" not in answer.headers


def test_a_token_is_taken_from_the_header_too(board: Pegboard) -> None:
    client = visit(board, identify=ada_or_bob)
    answer = client.get("/", headers={"Authorization": "Bearer bob-key"})
    assert answer.status_code == 200


def test_the_cookie_is_out_of_reach_of_scripts_and_other_sites(board: Pegboard) -> None:
    client = visit(board, identify=ada_or_bob)
    answer = client.post("/ui/enter", data={"token": "ada-key"}, follow_redirects=False)
    cookie = answer.headers["set-cookie"].lower()
    assert "httponly" in cookie
    assert "samesite=strict" in cookie


def test_a_token_in_an_address_signs_in_only_where_pegboard_ui_made_it(board: Pegboard) -> None:
    link = "/ui/enter?token=ada-key"
    shared = visit(board, identify=ada_or_bob).get(link)
    assert shared.status_code == 401
    assert "set-cookie" not in shared.headers
    own = visit(board, identify=ada_or_bob, accepts_links=True).get(link)
    assert "ada-key" in own.headers["set-cookie"]


def test_leaving_takes_the_token_away(board: Pegboard) -> None:
    client = signed_in(board, "ada-key")
    assert client.post("/ui/leave").status_code == 401


@pytest.mark.anyio
async def test_only_operators_see_the_calls_of_others(board: Pegboard) -> None:
    await board.call("echo", {"text": "x"}, caller=Caller("ada"))
    await board.call("list_projects", {}, caller=Caller("bob"))
    bobs = signed_in(board, "bob-key").get("/ui/calls").text
    assert "list_projects" in bobs
    assert "echo" not in bobs
    assert "echo" in signed_in(board, "ada-key").get("/ui/calls").text


@pytest.fixture
def notes() -> Pegboard:
    """A board whose one tool says more than a model is sent at once."""
    board = Pegboard("notes", spill_tokens=100)

    @board.tool(annotations={"readOnlyHint": True})
    def read_notes() -> Any:
        """Read all notes."""
        return [{"title": f"note {n}", "text": f"<b>{n}</b> " * 30} for n in range(60)]

    return board


async def _stored(board: Pegboard, who: str) -> str:
    await board.call("read_notes", {}, caller=Caller(who, mode="proxy"))
    page = signed_in(board, f"{who}-key").get("/ui/calls").text
    return page.split('href="/ui/result?call=')[1].split('"')[0]


@pytest.mark.anyio
async def test_a_stored_result_is_read_in_pages_by_its_caller(notes: Pegboard) -> None:
    call = await _stored(notes, "bob")
    bob = signed_in(notes, "bob-key")
    first = bob.get(f"/ui/result?call={call}").text
    assert "&lt;b&gt;0&lt;/b&gt;" in first
    further = first.split('<a href="/ui/result?')[1].split('"')[0].replace("&amp;", "&")
    assert "note 0&quot;" not in bob.get(f"/ui/result?{further}").text
    matching = bob.get("/ui/result", params={"call": call, "grep": "note 41"}).text
    assert "note 41" in matching
    assert "note 12" not in matching


@pytest.mark.anyio
async def test_nobody_else_reads_it_and_no_page_tells_its_handle(notes: Pegboard) -> None:
    call = await _stored(notes, "bob")
    (done,) = notes.parts.live.recent()
    ada = signed_in(notes, "ada-key")
    assert "of another caller" in ada.get("/ui/calls").text
    assert ada.get(f"/ui/result?call={call}").status_code == 400
    assert ada.get(f"/ui/result?call={done.handle}").status_code == 400
    bob = signed_in(notes, "bob-key")
    assert done.handle is not None
    for page in ("/", "/ui/calls", f"/ui/result?call={call}"):
        assert done.handle not in bob.get(page).text
    assert "handle" not in event_to_json(done)


@pytest.mark.anyio
@pytest.mark.parametrize(
    "query",
    ["path=nowhere", f"grep={'a' * 300}", "select=]", "offset=x", "offset=99999999999999999999"],
)
async def test_a_question_that_makes_no_page_is_answered_with_the_reason(
    notes: Pegboard, query: str
) -> None:
    call = await _stored(notes, "bob")
    answer = signed_in(notes, "bob-key").get(f"/ui/result?call={call}&{query}")
    assert answer.status_code == 400
    assert 'role="alert"' in answer.text


def test_only_operators_can_switch(board: Pegboard) -> None:
    client = signed_in(board, "bob-key")
    assert "Disable" not in client.get("/ui/tool?id=echo").text
    answer = client.post("/ui/tool/switch", data={"id": "echo", "enabled": ""})
    assert answer.status_code == 403
    assert "echo" in [t.name for t in board.tools()]


@pytest.mark.anyio
async def test_a_section_is_shown_and_its_actions_are_carried_out(board: Pegboard) -> None:
    approved: list[str] = []

    async def body(viewer: Viewer, proof: Html) -> Html:
        return tag("form", proof, tag("p", f"approved: {approved}"))

    async def approve(viewer: Viewer, form: object) -> None:
        approved.append(viewer.caller.principal)

    section = Section(name="trust", title="Trust", body=body, actions={"approve": approve})
    client = visit(board, identify=ada_or_bob, sections=(section,))
    bob, ada = ({"Authorization": f"Bearer {who}-key"} for who in ("bob", "ada"))
    assert client.get("/ui/trust", headers=bob).status_code == 403
    assert "Trust" not in client.get("/", headers=bob).text
    form = {"csrf_token": csrf_token_in(client.get("/ui/trust", headers=ada))}
    assert client.post("/ui/trust/approve", headers=ada).status_code == 403
    assert "ada" in client.post("/ui/trust/approve", data=form, headers=ada).text
    assert client.post("/ui/trust/approve", data=form, headers=bob).status_code == 403
    assert client.post("/ui/trust/other", data=form, headers=ada).status_code == 404
    assert approved == ["ada"]


def test_static_files_are_cached_forever_under_an_address_with_their_digest(
    client: TestClient,
) -> None:
    for path in re.findall(r'(?:src|href)="(/ui/static/[^"]+)"', client.get("/").text):
        answer = client.get(path)
        assert answer.status_code == 200
        assert "immutable" in answer.headers["cache-control"]
        assert "?v=" in path
    assert client.get("/ui/static/..%2Froutes.py").status_code == 404


def test_a_browser_that_looks_for_the_icon_on_its_own_finds_it(client: TestClient) -> None:
    found = client.get("/favicon.ico")
    assert (found.status_code, found.headers["content-type"]) == (200, "image/svg+xml")


def test_the_script_and_the_sheet_come_from_nowhere_else(client: TestClient) -> None:
    for name in ("dashboard.js", "dashboard.css"):
        assert "http" not in client.get(f"/ui/static/{name}").text


def test_the_live_parts_of_a_page_are_parts_that_the_stream_knows(client: TestClient) -> None:
    from pegboard.dashboard.live_updates import PART_NAMES

    for path in ("/", "/ui/calls"):
        text = client.get(path).text
        live = re.search(r'<body data-live="([^"]+)"', text)
        assert live
        parts = re.findall(r'data-part="([^"]+)"', text)
        assert parts == live[1].split()
        assert set(parts) <= set(PART_NAMES)


@pytest.mark.parametrize(
    ("page", "then"),
    [
        ("/ui/tools", "/ui/tools"),
        ("/ui/login/notion", "/ui/login/notion"),
        ("", "/"),
        ("//evil.example", "/"),
        ("/ui//evil.example", "/"),
        ("https://evil.example/ui/x", "/"),
        ("/ui/\\evil.example", "/"),
        ("/ui/x\r\nSet-Cookie: a=b", "/"),
    ],
)
def test_after_signing_in_one_goes_on_with_the_page_that_one_opened(
    board: Pegboard, page: str, then: str
) -> None:
    client = visit(board, identify=ada_or_bob)
    form = {"token": "ada-key", "page": page}
    answer = client.post("/ui/enter", data=form, follow_redirects=False)
    assert (answer.status_code, answer.headers["location"]) == (303, then)
