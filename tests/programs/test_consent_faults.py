"""Consent under attack: given twice, by another, too late, for something else, after a change."""

from __future__ import annotations

from typing import Any

import anyio
import pytest

from pegboard import CallResult, Pegboard, Policy, Rule
from pegboard.core.calls import LOCAL_CALLER, Caller
from pegboard.core.options import CodeOptions
from pegboard.errors import Busy
from pegboard.pipeline import Parts
from pegboard.store.memory import MemoryStore

pytestmark = pytest.mark.anyio

READ_ONLY = {"readOnlyHint": True}
DESTRUCTIVE = {"destructiveHint": True}
RUN = "io.github.pegboard/run"


class Shelf:
    """Books that programs delete."""

    def __init__(self) -> None:
        self.books = {n: f"Book {n}" for n in range(1, 7)}
        self.notes: list[str] = []
        self.reads = 0

    def board(self, store: MemoryStore | None = None, **options: Any) -> Pegboard:
        board = Pegboard("shelf", **options)
        board.parts = Parts(
            store=MemoryStore() if store is None else store, is_closed=board.is_closed
        )

        @board.tool(annotations=READ_ONLY)
        def list_books() -> list[int]:
            """List the numbers of all books."""
            self.reads += 1
            return sorted(self.books)

        @board.tool
        def get_nothing() -> int:
            """Read nothing; nobody said that it only reads."""
            self.notes.append("get_nothing")
            return 3

        @board.tool
        def add_note(text: str) -> dict[str, Any]:
            """Add a note."""
            self.notes.append(text)
            return {"text": text, "count": len(self.notes)}

        @board.tool(annotations=DESTRUCTIVE)
        def delete_book(number: int) -> dict[str, Any]:
            """Delete a book."""
            return {"number": number, "title": self.books.pop(number)}

        return board


def text_of(result: CallResult) -> str:
    return "\n".join(block.get("text", "") for block in result.content)


class Person:
    """Answers questions as told, and remembers them."""

    def __init__(self, *answers: bool) -> None:
        self.answers = list(answers)
        self.asked: list[list[tuple[str, Any]]] = []

    def __call__(self, question: Any) -> bool:
        self.asked.append([(tool, dict(arguments)) for tool, arguments in question.calls])
        return self.answers.pop(0) if self.answers else True


DELETE_ODD = """
for number in await list_books():
    if number % 2:
        await delete_book(number=number)
await list_books()
"""


DELETE_ALL = "for number in await list_books():\n    await delete_book(number=number)"


async def test_one_question_covers_all_calls_and_nothing_else_happens_before() -> None:
    shelf, person = Shelf(), Person()
    seen: list[int] = []

    def ask(question: Any) -> bool:
        seen.append(len(shelf.books))
        return person(question)

    result = await shelf.board().run_code(DELETE_ODD, write=True, consent=ask)
    assert result.structured == {"result": [2, 4, 6]}
    assert person.asked == [[("delete_book", {"number": n}) for n in (1, 3, 5)]]
    assert seen == [6]


async def test_a_refusal_raises_inside_the_program() -> None:
    shelf, person = Shelf(), Person(False)
    program = (
        "try:\n    await delete_book(number=1)\nexcept PermissionError as e:\n    x = str(e)\nx"
    )
    result = await shelf.board().run_code(program, write=True, consent=person)
    assert "declined" in text_of(result)
    assert len(shelf.books) == 6


async def test_without_anybody_to_ask_the_program_waits_and_nothing_is_deleted() -> None:
    shelf = Shelf()
    result = await shelf.board().run_code(DELETE_ODD, write=True)
    assert result.meta[RUN]["ran"] == "waiting"
    assert "delete_book" in text_of(result)
    assert len(shelf.books) == 6


async def test_the_copy_calls_only_tools_that_surely_read() -> None:
    shelf, person = Shelf(), Person()
    program = "await delete_book(number=1)\nawait add_note(text='x')\nawait get_nothing()"
    seen: list[list[str]] = []

    def ask(question: Any) -> bool:
        seen.append(list(shelf.notes))
        return person(question)

    await shelf.board().run_code(program, write=True, consent=ask)
    assert seen == [[]]
    assert shelf.notes == ["x", "get_nothing"]


async def test_a_call_that_the_preview_did_not_show_is_asked_about() -> None:
    shelf, person = Shelf(), Person()
    program = """
first = await delete_book(number=1)
if first["title"] == "Book 1":
    await delete_book(number=2)
"""
    await shelf.board().run_code(program, write=True, consent=person)
    together = [call for asked in person.asked for call in asked]
    assert ("delete_book", {"number": 2}) in together
    assert sorted(shelf.books) == [3, 4, 5, 6]


async def test_a_preview_that_shows_more_grants_nothing_beyond_the_run() -> None:
    shelf, person = Shelf(), Person(True, False)
    program = """
first = await delete_book(number=1)
await delete_book(number=2 if first["title"] == "Book 1" else 3)
"""
    await shelf.board().run_code(program, write=True, consent=person)
    if len(person.asked) == 2:
        assert person.asked[1] == [("delete_book", {"number": 2})]
        assert sorted(shelf.books) == [2, 3, 4, 5, 6]


async def test_consent_is_good_for_one_call_each() -> None:
    shelf, person = Shelf(), Person(True, False)
    program = """
n = 0
for _ in range(3):
    try:
        await delete_book(number=1)
        n += 1
    except Exception:
        pass
n
"""
    await shelf.board().run_code(program, write=True, consent=person)
    assert sorted(shelf.books) == [2, 3, 4, 5, 6]


async def test_a_call_is_made_only_where_its_line_was_shown() -> None:
    shelf, texts = Shelf(), list[str]()
    shelf.books = dict.fromkeys(range(120), "x")

    def ask(question: Any) -> bool:
        assert len(shelf.books) == 120 - 50 * len(texts)
        texts.append(question.text)
        return True

    await shelf.board().run_code(DELETE_ALL, write=True, consent=ask)
    lines = [line for text in texts for line in text.splitlines() if line.startswith("- ")]
    assert lines == [f"- delete_book(number={n})" for n in range(120)]
    assert ["you will be asked again" in text for text in texts] == [True, True, False]


async def test_an_answer_that_waits_lists_every_call_that_consent_covers() -> None:
    shelf = Shelf()
    board = shelf.board()
    gone: list[str] = []

    @board.tool(annotations=DESTRUCTIVE)
    def delete_file(path: str) -> str:
        """Delete a file."""
        gone.append(path)
        return path

    program = "for n in range(50):\n    await delete_file(path='/a/' + 'folder/' * 20 + str(n))"
    waiting = await board.run_code(program, write=True)
    for text in (text_of(waiting), waiting.structured["message"]):
        lines = [line for line in text.splitlines() if line.startswith("- ")]
        assert len(lines) == len(set(lines)) == 50
    await resume(board, waiting.structured["run"])
    assert len(gone) == 50


async def test_what_stands_at_the_end_of_a_long_argument_is_shown() -> None:
    shelf, texts = Shelf(), list[str]()
    board = shelf.board()

    @board.tool(annotations=DESTRUCTIVE)
    def delete_where(query: str) -> str:
        """Delete what a query finds."""
        return "gone"

    def ask(question: Any) -> bool:
        texts.append(question.text)
        return False

    program = "await delete_where(query='id = 1 ' + ' ' * 99 + 'and x ' * 5000 + 'or 1 = 1')"
    await board.run_code(program, write=True, consent=ask)
    assert 'or 1 = 1" [30023 characters])' in texts[0]
    assert len(texts[0]) < 600


async def test_what_cannot_be_seen_in_an_argument_is_shown_as_an_escape() -> None:
    shelf, texts = Shelf(), list[str]()
    board = shelf.board()

    @board.tool(annotations=DESTRUCTIVE)
    def delete_file(path: str) -> str:
        """Delete a file."""
        return path

    def ask(question: Any) -> bool:
        texts.append(question.text)
        return False

    program = r"await delete_file(path='a\u200bb\u202e\x1b[2K\n- delete_file(path=c)')"
    await board.run_code(program, write=True, consent=ask)
    assert texts[0].splitlines()[1:] == [
        r'- delete_file(path="a\u200bb\u202e\u001b[2K\n- delete_file(path=c)")'
    ]


async def resume(board: Pegboard, run: str, caller: Caller | None = None) -> CallResult:
    """As `run_destructive_code` does for a client that cannot ask."""
    return await board.resume_run(run, caller=caller or LOCAL_CALLER)


async def wait_for_consent(board: Pegboard, program: str = DELETE_ODD) -> str:
    result = await board.run_code(program, write=True)
    assert result.meta[RUN]["ran"] == "waiting"
    return result.structured["run"]


async def test_consent_given_twice_deletes_once() -> None:
    shelf = Shelf()
    board = shelf.board()
    run = await wait_for_consent(board)
    assert not (await resume(board, run)).is_error
    shelf.books[1] = "a new one"
    with pytest.raises(Exception, match="unknown, expired"):
        await resume(board, run)
    assert 1 in shelf.books


async def test_consent_given_twice_at_once_deletes_once() -> None:
    shelf = Shelf()
    board = shelf.board()
    run = await wait_for_consent(board)
    outcomes: list[str] = []

    async def go_on() -> None:
        try:
            outcomes.append("error" if (await resume(board, run)).is_error else "done")
        except Exception:
            outcomes.append("refused")

    async with anyio.create_task_group() as tasks:
        for _ in range(4):
            tasks.start_soon(go_on)
    assert sorted(outcomes) == ["done", "refused", "refused", "refused"]


async def test_consent_while_all_workers_are_busy_can_be_given_again() -> None:
    shelf = Shelf()
    board = shelf.board(code=CodeOptions(workers=1, queue=0))
    entered, leave = anyio.Event(), anyio.Event()

    @board.tool(annotations=READ_ONLY)
    async def read_slowly() -> int:
        """Wait."""
        entered.set()
        await leave.wait()
        return 1

    run = await wait_for_consent(board, f"await add_note(text='a')\n{DELETE_ODD}")
    with anyio.fail_after(20):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(board.run_code, "await read_slowly()")
            await entered.wait()
            for _ in range(2):
                with pytest.raises(Busy):
                    await resume(board, run)
            leave.set()
    assert not (await resume(board, run)).is_error
    assert (shelf.notes, sorted(shelf.books)) == (["a"], [2, 4, 6])


async def test_another_principal_cannot_consent() -> None:
    shelf = Shelf()
    board = shelf.board()
    run = await wait_for_consent(board)
    with pytest.raises(Exception, match="unknown, expired") as theirs:
        await resume(board, run, Caller(principal="eve"))
    with pytest.raises(Exception, match="unknown, expired") as missing:
        await resume(board, "r-0000000000000000")
    assert str(theirs.value) == str(missing.value)
    assert len(shelf.books) == 6
    assert not (await resume(board, run)).is_error  # the owner still can


async def test_consent_after_expiry_is_refused() -> None:
    shelf = Shelf()
    board = shelf.board(code=CodeOptions(record_ttl=0.2))
    run = await wait_for_consent(board)
    await anyio.sleep(0.3)
    with pytest.raises(Exception, match="unknown, expired"):
        await resume(board, run)
    assert len(shelf.books) == 6


async def test_another_replica_goes_on_after_a_restart() -> None:
    shelf, store = Shelf(), MemoryStore()
    run = await wait_for_consent(shelf.board(store))
    result = await resume(shelf.board(store), run)
    assert not result.is_error
    assert sorted(shelf.books) == [2, 4, 6]


async def test_a_tool_that_was_hidden_meanwhile_is_not_called() -> None:
    shelf, store = Shelf(), MemoryStore()
    run = await wait_for_consent(shelf.board(store))
    hidden = Policy([Rule(effect="deny", tools=("delete_book",))])
    outcome = await refused(shelf.board(store, policy=hidden), run)
    assert "delete_book" not in outcome
    assert len(shelf.books) == 6


async def test_a_tool_that_changed_meanwhile_is_not_called() -> None:
    shelf, store = Shelf(), MemoryStore()
    run = await wait_for_consent(shelf.board(store))
    changed = Pegboard("shelf")
    changed.parts = Parts(store=store, is_closed=changed.is_closed)

    @changed.tool(annotations=READ_ONLY)
    def list_books() -> list[int]:
        """List the numbers of all books."""
        return sorted(shelf.books)

    @changed.tool(annotations=DESTRUCTIVE)
    def delete_book(number: int, and_all_others: bool = True) -> str:
        """Delete all books."""
        shelf.books.clear()
        return "gone"

    await refused(changed, run)
    assert len(shelf.books) == 6


async def refused(board: Pegboard, run: str) -> str:
    try:
        result = await resume(board, run)
    except Exception as exc:
        return str(exc)
    assert result.is_error
    return text_of(result)
