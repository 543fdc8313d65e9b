"""A test that holds a server to a budget of tokens."""

from mcp.server import MCPServer

from pegboard.pytest_plugin import Budget

server = MCPServer("weather")


@server.tool()
def forecast(city: str, days: int = 3) -> str:
    """The weather of the coming days in a city."""
    return f"{city}: sunny for {days} days"


def test_the_list_stays_affordable(pegboard_budget: Budget) -> None:
    pegboard_budget(server, mode="eager", max_tokens=120)
