"""Several calls in parallel: results in order, each with its own error."""

import anyio

from pegboard import Call, Pegboard

board = Pegboard("weather")


@board.tool(annotations={"readOnlyHint": True}, timeout=5.0)
async def forecast(city: str) -> str:
    """Get tomorrow's weather in a city."""
    await anyio.sleep(0.01)
    return f"{city}: sunny"


async def main() -> None:
    calls = [Call("forecast", {"city": "Bonn"}), Call("forcast", {}), Call("forecast", {})]
    sunny, unknown, incomplete = await board.call_many(calls, max_concurrency=8, deadline=10.0)
    assert sunny.ok
    assert unknown.error["nearest"] == ["forecast"]
    assert incomplete.error["field"] == "city"


if __name__ == "__main__":
    anyio.run(main)
