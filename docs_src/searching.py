"""Searching a board in everyday words, by name, by category, and with filters."""

from pegboard import Pegboard

READ = {"readOnlyHint": True}
board = Pegboard("home")
calendar = board.category("calendar", description="Appointments")
kitchen = board.category("kitchen")


@calendar.tool(annotations=READ)
def list_events(day: str) -> list[str]:
    """List the appointments of a day."""
    return []


@calendar.tool(aliases=["call off"])
def cancel_event(title: str) -> str:
    """Remove an appointment."""
    return title


@kitchen.tool(annotations=READ)
def read_thermometer() -> float:
    """Give the temperature of the oven."""
    return 180.0


@kitchen.tool
def set_oven(degrees: int) -> int:
    """Heat the oven to a temperature."""
    return degrees


def main() -> None:
    board.prepare()  # compute all vectors now instead of in the background

    best = board.search("how hot is it in there")[0]
    assert best.tool.name == "read_thermometer"
    assert 0 < best.score <= 1
    assert best.why == ("meaning",)  # the tool contains no word of the query

    assert board.search("cancelEvent")[0].score == 1.0  # a name, in any spelling
    assert board.search("call off")[0].tool.name == "cancel_event"  # aliases count as names

    everything = board.search("everything about the kitchen")
    assert {match.tool.category for match in everything} == {"kitchen"}

    assert [m.tool.name for m in board.search("oven", risk="read")] == ["read_thermometer"]
    assert board.search("oven", category="calendar") == []
    assert board.search("who won the football match") == []  # empty if nothing is relevant


if __name__ == "__main__":
    main()
