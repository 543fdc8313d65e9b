"""Cache results, run calls in parallel, and load expensive tools on first use."""

from collections.abc import Callable

import anyio

from pegboard import Call, Pegboard

board = Pegboard("weather", cache={"forecast": 300.0}, max_parallel=16)
READ = {"readOnlyHint": True}
requests: list[str] = []
running: list[int] = []


@board.tool(annotations=READ)
async def forecast(city: str) -> str:
    """Get tomorrow's weather in a city."""
    requests.append(city)
    await anyio.sleep(0.05)
    running.append(len(requests))
    return f"{city}: sunny"


def charts() -> list[Callable[..., object]]:
    import statistics  # imported when the category is first used

    def mean_temperature(days: list[float]) -> float:
        """Compute the mean temperature of some days."""
        return statistics.fmean(days)

    return [mean_temperature]


board.load("charts", charts, description="Means and trends")


async def main() -> None:
    cities = ["Bonn", "Kiel", "Ulm", "Trier"]
    outcomes = await board.call_many([Call("forecast", {"city": city}) for city in cities])
    assert all(outcome.ok for outcome in outcomes)
    assert running[0] == 4  # in parallel: all four started before the first one finished

    await board.call("forecast", {"city": "Bonn"})
    assert requests.count("Bonn") == 1  # cached for five minutes
    assert not board.is_loaded("charts")

    await board.call("mean_temperature", {"days": [12.0, 14.0]})
    assert board.is_loaded("charts")
    assert board.schema_cache.stats().misses > 0  # each schema is built once, on first access


if __name__ == "__main__":
    anyio.run(main)
