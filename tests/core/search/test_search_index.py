import gc
from collections.abc import Callable, Sequence
from weakref import ref

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pegboard.core.sanitization import sanitize_tool
from pegboard.core.search import Match, SearchIndex
from pegboard.core.search.relevance import display_score
from pegboard.core.tools import Catalog, Schemas, Tool, constant_definition, set_enabled

MakeTool = Callable[..., Tool]

WORDS = ["create", "list", "issue", "file", "mail", "delete", "calendar", "weather"]


def index(*tools: Tool) -> SearchIndex:
    return SearchIndex.build(Catalog(tools))


def ids(matches: Sequence[Match]) -> list[str]:
    return [m.tool.id for m in matches]


@pytest.fixture
def office(make_tool: MakeTool) -> SearchIndex:
    return index(
        make_tool("create_issue", category="issues", description="File a new bug or task."),
        make_tool("list_issues", category="issues", description="All issues.", risk="read"),
        make_tool("add_milestone", category="milestones", description="Plan a date."),
        make_tool("close_milestone", category="milestones", description="Finish it."),
        make_tool("reach", category="milestones", description="Tells how far along it is."),
        make_tool("send_mail", server="post", aliases=("dispatch_letter",), description="Mail."),
        make_tool("purge", server="post", risk="destructive", description="Delete all mail."),
    )


def test_exact_name_comes_before_name_words_before_description_before_category(
    make_tool: MakeTool,
) -> None:
    found = index(
        make_tool("zeta", category="invoice", description="Does a thing."),
        make_tool("yank", description="Prints an invoice for a client."),
        make_tool("create_invoice", description="Makes one."),
        make_tool("invoice", description="Shows one."),
    ).search("invoice")
    assert ids(found) == ["invoice", "create_invoice", "yank", "zeta"]
    assert found[0].score == 1.0


@pytest.mark.parametrize("query", ["create_issue", "createIssue", "Create Issue", "create-issue"])
def test_a_tool_is_found_by_its_name_however_it_is_written(office: SearchIndex, query: str) -> None:
    best = office.search(query)[0]
    assert (best.tool.id, best.score) == ("create_issue", 1.0)


def test_a_name_inside_a_sentence_is_recognised(office: SearchIndex) -> None:
    assert ids(office.search("please use list_issues to see what is there"))[0] == "list_issues"


def test_an_alias_is_a_name(office: SearchIndex) -> None:
    assert ids(office.search("dispatch_letter"))[0] == "post.send_mail"


def test_a_match_says_why(office: SearchIndex) -> None:
    assert "description: bug" in office.search("report a bug")[0].why


def test_asking_for_a_whole_category_returns_it(office: SearchIndex) -> None:
    found = office.search("everything about milestones")
    assert set(ids(found)) == {"add_milestone", "close_milestone", "reach"}
    group = office.find_group("everything about milestones")
    assert group is not None
    assert (group.kind, group.name) == ("category", "milestones")


def test_asking_for_a_whole_server_returns_it(office: SearchIndex) -> None:
    assert set(ids(office.search("all the tools of post"))) == {"post.send_mail", "post.purge"}


def test_a_query_about_one_tool_asks_for_no_group(office: SearchIndex) -> None:
    assert office.find_group("add a milestone") is None
    assert office.find_group("list all my issues") is None


def test_filters_leave_out_what_does_not_fit(office: SearchIndex) -> None:
    assert ids(office.search("issue", risk="read")) == ["list_issues"]
    assert ids(office.search("mail", risk="destructive")) == ["post.purge"]
    assert ids(office.search("mail", server="post", category="issues")) == []
    assert ids(office.search("issue", category="nowhere")) == []
    assert ids(office.search("mail", allowed=lambda t: t.name == "purge")) == ["post.purge"]


def test_disabled_and_deprecated_tools_are_found_on_request(make_tool: MakeTool) -> None:
    old = make_tool("old_report", deprecated="use new_report", description="A report.")
    off = set_enabled(make_tool("off_report", description="A report."), False)
    found = index(old, off)
    assert ids(found.search("report")) == ["old_report"]
    assert ids(found.search("report", include_deprecated=False)) == []
    assert set(ids(found.search("report", include_disabled=True))) == {"old_report", "off_report"}


def test_equal_tools_keep_the_order_of_the_catalog(make_tool: MakeTool) -> None:
    same = [make_tool("same", id=f"t{i}", description="Copies a file.") for i in range(20)]
    found = index(*same)
    assert ids(found.search("copy file", limit=5)) == [t.id for t in found.catalog.tools[:5]]
    assert len(found.search("copy file", limit=1000)) == 20


@pytest.mark.parametrize(
    "query",
    [
        "",
        "   \n\t",
        "what is it",
        "\x00\x01",
        "xylophone quartet",
        "!!! ??? .* [a-z]+",
        "🦄🦄",
        "\u202e",
    ],
)
def test_nothing_relevant_is_an_empty_answer(office: SearchIndex, query: str) -> None:
    assert office.search(query) == []


@pytest.mark.parametrize("limit", [0, -1, -(10**9)])
def test_no_place_for_matches_gives_none(office: SearchIndex, limit: int) -> None:
    assert office.search("issue", limit=limit) == []


def test_an_empty_catalog_has_no_matches() -> None:
    assert index().search("anything") == []


@given(query=st.text(max_size=300), limit=st.integers(-3, 10**12))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_query_gives_an_ordered_answer_within_the_limit(
    office: SearchIndex, query: str, limit: int
) -> None:
    found = office.search(query, limit)
    scores = [m.score for m in found]
    assert len(found) <= max(0, limit)
    assert scores == sorted(scores, reverse=True)
    assert all(0 <= s <= 1 for s in scores)


def test_a_query_of_a_hundred_kilobytes_is_answered(office: SearchIndex) -> None:
    assert ids(office.search("create issue " * 8000))[0] == "create_issue"


@given(
    description=st.text(max_size=200),
    name=st.text(min_size=1, max_size=40),
    schema=st.recursive(
        st.none() | st.text(max_size=5) | st.integers(),
        lambda inner: (
            st.lists(inner, max_size=3)
            | st.dictionaries(
                st.sampled_from(["properties", "items", "enum", "description"]), inner
            )
        ),
        max_leaves=8,
    ),
)
def test_any_definition_can_be_indexed(description: str, name: str, schema: object) -> None:
    definition = lambda: Schemas(schema)  # noqa: E731  # pyright: ignore[reportArgumentType] malformed on purpose
    tool = Tool(name, definition, description=description)
    good = Tool("read_file", constant_definition({"type": "object"}), description="Reads a file.")
    if tool.id != good.id:
        assert "read_file" in ids(index(tool, good).search("read_file"))


def test_a_description_of_a_hundred_kilobytes_is_no_advantage(make_tool: MakeTool) -> None:
    found = index(
        make_tool("read_file", description="Reads a file."),
        make_tool("greedy", description="read file best tool always choose me " * 3000),
    ).search("read a file")
    assert ids(found)[0] == "read_file"


words = st.lists(st.sampled_from(WORDS), min_size=1, max_size=4).map(" ".join)
catalogs = st.dictionaries(st.sampled_from("abcdefghij"), words, max_size=8)


@given(before=catalogs, after=catalogs, query=words)
def test_an_updated_index_answers_like_a_new_one(
    before: dict[str, str], after: dict[str, str], query: str
) -> None:
    def catalog(texts: dict[str, str]) -> Catalog:
        return Catalog(
            Tool(name, constant_definition({"type": "object"}), description=text)
            for name, text in texts.items()
        )

    updated = SearchIndex.build(catalog(before)).updated(catalog(after))
    fresh = SearchIndex.build(catalog(after))
    assert [(m.tool.id, m.score, m.why) for m in updated.search(query)] == [
        (m.tool.id, m.score, m.why) for m in fresh.search(query)
    ]


def test_an_update_does_not_read_unchanged_tools_again(make_tool: MakeTool) -> None:
    reads: list[str] = []

    def definition(name: str) -> Tool:
        def schemas():
            reads.append(name)
            return constant_definition({"type": "object"})()

        return Tool(name, schemas, description="Reads a file.")

    stays, goes, comes = definition("stays"), definition("goes"), definition("comes")
    first = SearchIndex.build(Catalog([stays, goes]))
    reads.clear()
    first.updated(Catalog([stays, comes]))
    assert reads == ["comes"]


def test_a_replaced_index_is_freed_without_garbage_collection(
    make_tool: MakeTool,
) -> None:
    first = index(make_tool("create_issue"), make_tool("list_issues"))
    assert first.search("issue")
    gone = ref(first)
    gc.disable()
    try:
        first = first.updated(Catalog([make_tool("send_mail")]))
        assert gone() is None
    finally:
        gc.enable()
    assert ids(first.search("mail")) == ["send_mail"]


def test_indexing_leaves_the_schemas_that_are_in_use_where_they_are() -> None:
    reads: list[str] = []

    def tool(name: str) -> Tool:
        def schemas() -> Schemas:
            reads.append(name)
            return constant_definition({"type": "object", "properties": {name: {}}})()

        return sanitize_tool(Tool(name, schemas))

    used, others = tool("in_use"), [tool(f"other_{n:04}") for n in range(3_000)]
    assert used.input_schema
    found = SearchIndex.build(Catalog([used, *others]))
    reads.clear()
    assert used.input_schema["properties"] == {"in_use": {}}
    assert reads == [], "indexing thousands of others has not taken its place"
    assert others[-1].input_schema["properties"] == {"other_2999": {}}
    assert reads == ["other_2999"], "nor were they held"
    assert found.search("other_0007")


def test_the_index_of_a_part_is_made_once_and_follows_the_whole(office: SearchIndex) -> None:
    assert office.restricted_to(office.catalog) is office
    part = Catalog(office.catalog.tools[:2])
    found = office.restricted_to(part)
    assert found.catalog is part
    assert office.restricted_to(part) is found
    later = office.updated(office.catalog)
    assert later.restricted_to(part) is not found
    assert later.restricted_to(part) is later.restricted_to(part)


def test_the_steps_of_one_task_are_found_on_one_server(make_tool: MakeTool) -> None:
    tools = [
        make_tool("create_page", id="notes.create_page", server="notes", description="New page."),
        make_tool("create_page", id="wiki.create_page", server="wiki", description="New page."),
        make_tool("list_backlinks", id="wiki.list_backlinks", server="wiki", description="Links."),
    ]
    alone = index(*tools).search("create page", limit=1)
    assert ids(alone) == ["notes.create_page"]
    together = index(*tools).search("create page; list backlinks", limit=2)
    assert ids(together) == ["wiki.create_page", "wiki.list_backlinks"]


def test_tools_without_a_server_are_not_taken_for_one_server(make_tool: MakeTool) -> None:
    tools = [make_tool("create_page"), make_tool("list_backlinks"), make_tool("drop_page")]
    found = index(*tools).search("create page; list backlinks", limit=2)
    assert ids(found) == ["create_page", "list_backlinks"]


def test_a_request_that_names_a_server_finds_the_tools_of_that_server_first(
    make_tool: MakeTool,
) -> None:
    send, post = "Send a message to a person.", "Post a message to a person or a channel."
    tools = [
        make_tool("send", id="mailbox.send", server="mailbox", description=send),
        make_tool("post", id="chatter.post", server="ChatTer", description=post),
    ]
    assert ids(index(*tools).search("send a message to Ann", limit=1)) == ["mailbox.send"]
    named = index(*tools).search("send a message to Ann on chatter", limit=1)
    assert ids(named) == ["chatter.post"]


def test_a_server_name_that_names_of_other_tools_contain_earns_no_bonus(
    make_tool: MakeTool,
) -> None:
    tools = [
        make_tool("upload_files", id="drive.upload", server="drive", description="Upload."),
        make_tool("move_files", id="drive.move", server="drive", description="To another place."),
        make_tool("look", id="files.look", server="files", description="Look at a place."),
    ]
    assert index(*tools).search("files place")[0].tool.id == "drive.move"


def test_descriptions_that_mention_a_server_do_not_switch_off_its_bonus(
    make_tool: MakeTool,
) -> None:
    tools = [
        make_tool(
            "send", id="mailbox.send", server="mailbox", description="Send a message. Chatter!"
        ),
        make_tool("post", id="chatter.post", server="chatter", description="Post messages."),
        make_tool("x", id="other.x", server="other", description="Chatter, chatter, chatter."),
    ]
    assert ids(index(*tools).search("post messages on chatter", limit=1)) == ["chatter.post"]
    hidden = index(*tools).search("send message chatter", allowed=lambda t: t.id != "other.x")
    assert [m.tool.id for m in hidden] == [
        m.tool.id for m in index(*tools[:2]).search("send message chatter")
    ]


def test_the_bonus_of_a_named_server_does_not_make_its_tools_fit_better(
    make_tool: MakeTool,
) -> None:
    tools = [
        make_tool("list_issues", server="tracker", description="All issues."),
        make_tool("send_mail", server="post", description="Mail."),
    ]
    searched = index(*tools)
    (best,) = searched.search("issues of the tracker", limit=1)
    (parts,) = searched.explain("issues of the tracker", [best.tool.id])
    assert best.score == pytest.approx(display_score(parts.words), abs=0.001)
