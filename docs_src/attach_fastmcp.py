"""An existing FastMCP server, made lazy with one line."""

from fastmcp import FastMCP

from pegboard import attach

server = FastMCP("weather")


@server.tool
def forecast(city: str, days: int = 3) -> str:
    """Get the weather forecast for a city."""
    return f"{city}: sunny for {days} days"


attach(server, mode="proxy")

if __name__ == "__main__":
    server.run()
