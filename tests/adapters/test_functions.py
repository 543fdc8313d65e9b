@pytest.mark.anyio
async def test_a_text_that_happens_to_be_json_stays_a_text() -> None:
    board = Pegboard()

    @board.tool
    def keep(body: str | None = None) -> str:
        return repr(body)

    assert (await board.call("keep", {"body": '{"a": 1}'})).output == {"result": "'{\"a\": 1}'"}
