"""A test that limits the token cost of a server's tool list."""

from mcp.server import MCPServer

from pegboard.pytest_plugin import Budget

server = MCPServer("weather")


@server.tool()
def forecast(city: str, days: int = 3) -> str:
    """Get the weather forecast for a city."""
    return f"{city}: sunny for {days} days"


def test_the_list_stays_affordable(pegboard_budget: Budget) -> None:
    pegboard_budget(server, mode="eager", max_tokens=120)
