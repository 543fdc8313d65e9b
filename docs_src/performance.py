"""Keep answers that stay true for a while, call side by side, and load what is dear when used."""

from collections.abc import Callable

import anyio

from pegboard import Call, Pegboard

board = Pegboard("weather", cache={"forecast": 300.0}, max_parallel=16)
READ = {"readOnlyHint": True}
asked: list[str] = []
at_once: list[int] = []


@board.tool(annotations=READ)
async def forecast(city: str) -> str:
    """The weather of tomorrow in a city."""
    asked.append(city)
    await anyio.sleep(0.05)
    at_once.append(len(asked))
    return f"{city}: sunny"


def charts() -> list[Callable[..., object]]:
    import statistics  # what a tool needs is imported with it

    def mean_temperature(days: list[float]) -> float:
        """The mean of some days' temperatures."""
        return statistics.fmean(days)

    return [mean_temperature]


board.load("charts", charts, description="Means and trends")


async def main() -> None:
    cities = ["Bonn", "Kiel", "Ulm", "Trier"]
    outcomes = await board.call_many([Call("forecast", {"city": city}) for city in cities])
    assert all(outcome.ok for outcome in outcomes)
    assert at_once[0] == 4  # side by side: all were asked before the first answered

    await board.call("forecast", {"city": "Bonn"})
    assert asked.count("Bonn") == 1  # kept for five minutes
    assert not board.is_loaded("charts")

    await board.call("mean_temperature", {"days": [12.0, 14.0]})
    assert board.is_loaded("charts")
    assert board.schema_cache.stats().misses > 0  # each schema is made once, when it is needed


if __name__ == "__main__":
    anyio.run(main)
