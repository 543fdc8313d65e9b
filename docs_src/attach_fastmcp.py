"""A FastMCP server that was there before, made lazy in one line."""

from fastmcp import FastMCP

from pegboard import attach

server = FastMCP("weather")


@server.tool
def forecast(city: str, days: int = 3) -> str:
    """The weather of the coming days in a city."""
    return f"{city}: sunny for {days} days"


attach(server, mode="proxy")

if __name__ == "__main__":
    server.run()
