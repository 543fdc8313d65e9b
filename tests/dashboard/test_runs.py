"""The page of runs: programs, their calls, and who may see them."""

from __future__ import annotations

import pytest
from tests.dashboard.boards import ada_or_bob, visit

from pegboard import Pegboard
from pegboard.core.calls import Caller
from pegboard.core.options import CodeOptions

pytestmark = pytest.mark.anyio

ADA, BOB = {"Authorization": "Bearer ada-key"}, {"Authorization": "Bearer bob-key"}
PROGRAM = "sum(page['n'] for page in await asyncio.gather(*[number(n=i) for i in range(4)]))"


def make_board(store_programs: bool = False) -> Pegboard:
    board = Pegboard("runs", code=CodeOptions(store_programs=store_programs))

    @board.tool(annotations={"readOnlyHint": True})
    def number(n: int) -> dict[str, int]:
        """Return the number."""
        return {"n": n}

    return board


async def test_there_is_no_page_before_the_first_program() -> None:
    board = make_board()
    client = visit(board)
    assert "/ui/runs" not in client.get("/").text
    await board.run_code("1")
    assert "/ui/runs" in client.get("/").text


async def test_a_run_shows_its_calls_and_what_stayed_inside() -> None:
    board = make_board()
    result = await board.run_code(PROGRAM)
    await board.run_code("missing(1)")
    run = result.meta["io.github.pegboard/run"]["id"]
    client = visit(board)
    listed = client.get("/ui/runs").text
    assert run in listed
    assert "finished" in listed
    assert "nothing ran" in listed
    page = client.get(f"/ui/run?id={run}").text
    assert page.count("/ui/tool?id=number") == 4
    assert "not sent to the model" in page
    assert "asyncio.gather" not in page
    assert "code.store_programs" in page


async def test_a_program_is_shown_where_programs_are_stored() -> None:
    board = make_board(store_programs=True)
    result = await board.run_code(f"{PROGRAM}  # <script>")
    run = result.meta["io.github.pegboard/run"]["id"]
    page = visit(board).get(f"/ui/run?id={run}").text
    assert "asyncio.gather" in page
    assert "# &lt;script&gt;" in page


async def test_people_see_their_own_runs_and_operators_everybodys() -> None:
    board = make_board(store_programs=True)
    runs = {
        who: (await board.run_code(f"{PROGRAM}  # {who}", caller=Caller(who))).meta[
            "io.github.pegboard/run"
        ]["id"]
        for who in ("bob", "carol")
    }
    client = visit(board, identify=ada_or_bob)
    assert all(run in client.get("/ui/runs", headers=ADA).text for run in runs.values())
    own = client.get("/ui/runs", headers=BOB).text
    assert runs["bob"] in own
    assert runs["carol"] not in own
    assert client.get(f"/ui/run?id={runs['carol']}", headers=BOB).status_code == 400
    assert client.get(f"/ui/run?id={runs['carol']}", headers=ADA).status_code == 200
