"""Programs that write: what a second try repeats, and consent to what destroys."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import anyio
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.boards import WRITE
from tests.programs.conftest import MakeBoard, Tracker, tracker_board

from pegboard import Pegboard
from pegboard.core.calls import Caller
from pegboard.core.code.consent import ConsentQuestion
from pegboard.core.options import CodeOptions
from pegboard.errors import InvalidArguments
from pegboard.store.memory import MemoryStore

pytestmark = pytest.mark.anyio

COMMENT_ON_ALL = "for i in await list_issues():\n    await add_comment(issue=i['key'], body='x')\n"
DELETE_TWO = (
    "rows = await list_issues()\n"
    "out = []\n"
    "for row in rows[:2]:\n"
    "    out.append((await delete_issue(issue=row['key']))['deleted'])\n"
    "out"
)


# A second try ----------------------------------------------------------------------------------


async def test_a_second_try_repeats_no_write(board: Pegboard, tracker: Tracker) -> None:
    failing = COMMENT_ON_ALL + "    if i['key'] == 'WEB-3': 1 / 0\n"
    first = await board.run_code(failing, write=True)
    assert "Done before that: list_issues, add_comment ×3." in first.content[0]["text"]
    second = await board.run_code(COMMENT_ON_ALL, write=True, after=first.structured["after"])
    assert not second.is_error
    assert [issue for _, issue in tracker.done] == [f"WEB-{n}" for n in range(1, 6)]


async def test_a_third_try_knows_what_the_first_did(board: Pegboard, tracker: Tracker) -> None:
    write = "await add_comment(issue='WEB-1', body='x')\n"
    first = await board.run_code(f"{write}1 / 0", write=True)
    second = await board.run_code("1 / 0", write=True, after=first.structured["after"])
    assert second.structured["ran"] == "nothing"
    # The second try made no call of its own, so the handle of the first is still the right one.
    third = await board.run_code(f"{write}1", write=True, after=first.structured["after"])
    assert third.structured == {"result": 1}
    assert len(tracker.done) == 1


async def test_equal_calls_are_different_calls(board: Pegboard, tracker: Tracker) -> None:
    write = "await add_comment(issue='WEB-1', body='x')\n"
    first = await board.run_code(f"{write}1 / 0", write=True)
    await board.run_code(write * 3, write=True, after=first.structured["after"])
    assert len(tracker.done) == 3


async def test_a_record_belongs_to_one_principal(board: Pegboard) -> None:
    first = await board.run_code("await add_comment(issue='WEB-1', body='x')\n1 / 0", write=True)
    with pytest.raises(InvalidArguments, match="unknown, expired"):
        await board.run_code("1", write=True, after=first.structured["after"], caller=Caller("eve"))


async def test_writes_in_flight_come_home_when_the_program_fails(
    board: Pegboard, tracker: Tracker
) -> None:
    program = (
        "await gather(add_comment(issue='WEB-1', body='x', wait=0.3), "
        "add_comment(issue='WEB-0', body='x'))"
    )
    result = await board.run_code(program, write=True)
    assert "There is no issue WEB-0." in result.content[0]["text"]
    assert result.structured["done"] == [{"tool": "add_comment", "times": 1}]
    assert tracker.done == [("add_comment", "WEB-1")]


async def test_a_cancelled_write_may_have_happened(board: Pegboard) -> None:
    program = "await add_comment(issue='WEB-1', body='x', wait=30)"
    limited = replace(board.options, code=CodeOptions(total_time=0.6))
    board.reconfigure(limited)
    result = await board.run_code(program, write=True)
    assert "May have happened: add_comment" in result.content[0]["text"]


async def test_a_write_that_may_have_happened_is_not_made_again(
    make_board: MakeBoard, tracker: Tracker
) -> None:
    board = make_board(code=CodeOptions(total_time=0.6))

    @board.tool(annotations=WRITE)
    async def send(to: str) -> str:
        """Send a message, and answer late."""
        tracker.done.append(("send", to))
        await anyio.sleep(30)
        return to

    after = None
    for _ in range(3):
        result = await board.run_code("await send(to='ann')", write=True, after=after)
        after = result.structured.get("after", after)
        assert "may have" in result.content[0]["text"].lower()
    assert tracker.done == [("send", "ann")]
    # Once its author knows the outcome, the rest of the program continues.
    await board.run_code("await add_comment(issue='A', body='x')", write=True, after=after)
    assert tracker.done == [("send", "ann"), ("add_comment", "A")]


@settings(max_examples=15, deadline=None)
@given(fails_at=st.integers(0, 7), parallel=st.booleans())
def test_no_write_is_made_twice_wherever_a_program_fails(fails_at: int, parallel: bool) -> None:
    tracker = Tracker()
    board = tracker_board(tracker)
    calls = [f"add_comment(issue='WEB-{n}', body='b')" for n in range(1, 7)]
    if parallel:
        lines = [f"await gather({', '.join(calls[i : i + 2])})" for i in range(0, 6, 2)]
    else:
        lines = [f"await {call}" for call in calls]
    failing = [*lines[:fails_at], "1 / 0", *lines[fails_at:]]

    async def main() -> None:
        first = await board.run_code("\n".join(failing), write=True)
        after = first.structured.get("after")
        await board.run_code("\n".join(lines), write=True, after=after)

    anyio.run(main)
    assert sorted(issue for _, issue in tracker.done) == [f"WEB-{n}" for n in range(1, 7)]


async def test_a_recorded_run_is_repeated_without_any_call(
    make_board: MakeBoard, tracker: Tracker
) -> None:
    board = make_board(code=CodeOptions(store_programs=True))
    program = "await add_comment(issue='WEB-1', body='x')\n[random.random(), len(list_issues())]"
    program = program.replace("len(list_issues())", "len(await list_issues())")
    first = await board.run_code(program, write=True)
    run = first.meta["io.github.pegboard/run"]["id"]
    done = list(tracker.done)
    repeated = await board.dispatcher.replay_program(await board.view(), run)
    assert repeated.content[0]["text"] == first.content[0]["text"]
    assert tracker.done == done
    with pytest.raises(InvalidArguments):
        await board.dispatcher.replay_program(await board.view(Caller("eve")), run)


@pytest.mark.parametrize(
    "program",
    [
        "try:\n    await add_comment(issue='WEB-0', body='x')\n"
        "except RuntimeError as error:\n    text = str(error)\n[text, time.time() > 0]",
        "r = await gather(add_comment(issue='WEB-0', body='x'), return_exceptions=True)\nstr(r[0])",
        "print(time.time() % 1 == time.time() % 1)\nawait add_comment(issue='A', body='x')\n1 / 0",
        "await delete_issue(issue='WEB-1')",
        "1 / 0",
    ],
    ids=["caught", "gathered", "stopped", "declined", "nothing"],
)
async def test_a_replay_fails_where_the_run_did_and_leaves_its_record_alone(
    make_board: MakeBoard, tracker: Tracker, program: str
) -> None:
    board = make_board(code=CodeOptions(store_programs=True))
    first = await board.run_code(program, write=True, consent=lambda question: False)
    run = first.meta["io.github.pegboard/run"]["id"]
    done = list(tracker.done)
    expected = first.content[0]["text"].partition(" Fix the program")[0]
    clock = f"print(time.time())\n{program}"
    timed = await board.run_code(clock, write=True, consent=lambda question: False)
    printed: list[str] = []
    for _ in range(2):
        repeated = await board.dispatcher.replay_program(await board.view(), run)
        assert repeated.content[0]["text"].startswith(expected)
        again = await board.dispatcher.replay_program(
            await board.view(), timed.meta["io.github.pegboard/run"]["id"]
        )
        printed.append(again.content[-1]["text"])
    assert printed[0] == printed[1]
    assert tracker.done[: len(done)] == done


# Consent ---------------------------------------------------------------------------------------


async def test_one_question_lists_exactly_what_will_be_done(
    board: Pegboard, tracker: Tracker
) -> None:
    questions: list[ConsentQuestion] = []

    def agree(question: ConsentQuestion) -> bool:
        assert tracker.done == []
        questions.append(question)
        return True

    result = await board.run_code(DELETE_TWO, write=True, consent=agree)
    assert result.structured == {"result": ["WEB-1", "WEB-2"]}
    [question] = questions
    assert question.calls == (
        ("delete_issue", {"issue": "WEB-1"}),
        ("delete_issue", {"issue": "WEB-2"}),
    )
    assert question.is_complete
    assert '- delete_issue(issue="WEB-1")' in question.text


async def test_a_refusal_raises_inside_the_program(board: Pegboard, tracker: Tracker) -> None:
    program = (
        "try:\n    await delete_issue(issue='WEB-1')\n"
        "except PermissionError as error:\n    result = str(error)\nresult"
    )
    result = await board.run_code(program, write=True, consent=lambda question: False)
    assert result.structured == {"result": "delete_issue was declined by the user."}
    assert tracker.done == []


async def test_a_call_that_was_not_shown_is_asked_about_again(
    board: Pegboard, tracker: Tracker
) -> None:
    # The stand-in for the first result is not what the tool returns.
    program = (
        "first = await delete_issue(issue='WEB-1')\n"
        "await delete_issue(issue='WEB-9' if first['deleted'] == 'WEB-1' else 'WEB-2')"
    )
    board.tool(name="unused", annotations={"readOnlyHint": True})(lambda: 1)
    seen: list[Any] = []

    def agree(question: ConsentQuestion) -> bool:
        seen.append([arguments["issue"] for _, arguments in question.calls])
        return True

    await board.run_code(program, write=True, consent=agree)
    shown = [issue for question in seen for issue in question]
    done = [issue for _, issue in tracker.done]
    assert done == ["WEB-1", "WEB-9"]
    assert set(done) <= set(shown)


async def test_a_suspended_run_goes_on_in_another_process_with_the_same_store(
    tracker: Tracker,
) -> None:
    store = MemoryStore()

    def replica() -> Pegboard:
        board = tracker_board(tracker)
        board.parts = replace(board.parts, store=store)
        return board

    waiting = await replica().run_code(DELETE_TWO, write=True)
    assert not waiting.is_error
    assert waiting.structured["ran"] == "waiting"
    assert "run_destructive_code" in waiting.content[0]["text"]
    assert tracker.done == []
    run = waiting.structured["run"]
    with pytest.raises(InvalidArguments):
        await replica().resume_run(run, caller=Caller("eve"))
    result = await replica().resume_run(run)
    assert result.structured == {"result": ["WEB-1", "WEB-2"]}
    with pytest.raises(InvalidArguments, match="already continued"):
        await replica().resume_run(run)


async def test_only_one_of_two_resumes_goes_on(board: Pegboard, tracker: Tracker) -> None:
    run = (await board.run_code(DELETE_TWO, write=True)).structured["run"]
    outcomes: list[str] = []

    async def resume() -> None:
        try:
            await board.resume_run(run)
            outcomes.append("ran")
        except InvalidArguments:
            outcomes.append("refused")

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(resume)
        tasks.start_soon(resume)
    assert sorted(outcomes) == ["ran", "refused"]
    assert len(tracker.done) == 2


async def test_a_run_expires(make_board: MakeBoard) -> None:
    board = make_board(code=CodeOptions(record_ttl=0.05))
    run = (await board.run_code(DELETE_TWO, write=True)).structured["run"]
    await anyio.sleep(0.1)
    with pytest.raises(InvalidArguments, match="expired"):
        await board.resume_run(run)


async def test_a_tool_that_changed_or_was_hidden_ends_a_suspended_run(tracker: Tracker) -> None:
    store = MemoryStore()
    first = tracker_board(tracker)
    first.parts = replace(first.parts, store=store)
    run = (await first.run_code(DELETE_TWO, write=True)).structured["run"]
    second = tracker_board(tracker)
    second.parts = replace(second.parts, store=store)
    second.disable("delete_issue")
    result = await second.resume_run(run)
    assert result.is_error
    assert "Its tools have changed since it was suspended" in result.content[0]["text"]
    assert "delete_issue" not in result.content[0]["text"].split("Done")[0]
    assert tracker.done == []


async def test_reads_and_deletions_side_by_side(board: Pegboard, tracker: Tracker) -> None:
    program = (
        "r = await gather(list_issues(), delete_issue(issue='WEB-1'), "
        "slow_read(seconds=0.05), delete_issue(issue='WEB-2'))\n"
        "[len(r[0]), r[1]['deleted'], r[2], r[3]['deleted']]"
    )
    run = (await board.run_code(program, write=True)).structured["run"]
    result = await board.resume_run(run)
    assert result.structured == {"result": [5, "WEB-1", "waited", "WEB-2"]}
    assert [name for name, _ in tracker.done].count("delete_issue") == 2


async def test_the_preview_calls_only_what_is_declared_read_only(
    board: Pegboard, tracker: Tracker
) -> None:
    program = "await delete_issue(issue='WEB-1')\nawait read_report(name='q')\n1"
    waiting = await board.run_code(program, write=True)
    assert waiting.structured["ran"] == "waiting"
    assert tracker.done == []  # the name of `read_report` alone says that it reads


async def test_a_program_without_await_waits_for_consent_too(
    board: Pegboard, tracker: Tracker
) -> None:
    program = "[delete_issue(issue=i['key'])['deleted'] for i in list_issues()[:2]]"
    seen: list[int] = []

    def agree(question: ConsentQuestion) -> bool:
        seen.append(len(question.calls))
        return True

    result = await board.run_code(program, write=True, consent=agree)
    assert result.structured == {"result": ["WEB-1", "WEB-2"]}
    assert seen == [2]


@pytest.mark.parametrize(
    "trick",
    [
        "eval('delete_' + \"issue(issue='WEB-1')\")",
        "globals()['delete_issue'](issue='WEB-1')",
        'exec("r = delete_" + "issue(issue=\'WEB-1\')")',
    ],
)
async def test_a_tool_that_is_not_named_cannot_be_called(
    board: Pegboard, tracker: Tracker, trick: str
) -> None:
    for write in (False, True):
        await board.run_code(f"try:\n    {trick}\nexcept Exception:\n    pass\n1", write=write)
        await board.run_code(f"await {trick}", write=write)
    assert tracker.done == []
