"""What a model reads when a call fails, and how a tool reports an error."""

import anyio
from mcp import Client

from pegboard import Pegboard, ToolError, UpstreamUnavailable, build_server

board = Pegboard("mail", breaker_failures=3, breaker_cooldown=30.0, attempts=2)
READ = {"readOnlyHint": True}


@board.tool
def send(to: str, text: str) -> str:
    """Send a letter."""
    if "@" not in to:
        raise ToolError(f"{to!r} is not an address: use name@host.")  # the model reads this
    raise ConnectionError("password=hunter2")  # a crash: its text is only logged


@board.tool(related=["outbox"])
def deliver() -> str:
    """Deliver all waiting letters."""
    raise UpstreamUnavailable("The post office does not answer.")  # counts for the circuit breaker


@board.tool(annotations=READ)
def outbox() -> list[str]:
    """List waiting letters."""
    return ["a letter"]


async def main() -> None:
    async with Client(build_server(board)) as client:

        async def error(tool: str, **arguments: object) -> dict[str, object]:
            result = await client.call_tool(tool, arguments)
            assert result.is_error
            return result.structured_content["error"]

        wrong = await error("send", too="ann", text="hello")
        assert wrong["kind"] == "invalid_arguments"
        assert wrong["nearest"] == ["to"]
        assert wrong["signature"] == "send(to: str, text: str)"

        assert "not an address" in (await error("send", to="ann", text="hello"))["message"]
        assert "hunter2" not in (await error("send", to="ann@home", text="hello"))["message"]

        for _ in range(3):
            assert (await error("deliver"))["kind"] == "unavailable"
        refused = await error("deliver")
        assert refused["kind"] == "circuit_open"
        assert refused["retry_after"] <= 30
        assert refused["related"] == ["outbox"]


if __name__ == "__main__":
    anyio.run(main)
