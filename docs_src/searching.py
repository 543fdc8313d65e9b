"""A board searched in everyday words, by name, by category, with filters."""

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
    board.prepare()  # make all vectors now; without it they are made behind the answers

    best = board.search("how hot is it in there")[0]
    assert best.tool.name == "read_thermometer"
    assert 0 < best.score <= 1
    assert best.why == ("meaning",)  # no word of the question is in the tool

    assert board.search("cancelEvent")[0].score == 1.0  # a name, however it is written
    assert board.search("call off")[0].tool.name == "cancel_event"  # an alias is a name

    everything = board.search("everything about the kitchen")
    assert {match.tool.category for match in everything} == {"kitchen"}

    assert [m.tool.name for m in board.search("oven", risk="read")] == ["read_thermometer"]
    assert board.search("oven", category="calendar") == []
    assert board.search("who won the football match") == []  # nothing relevant is an empty list


if __name__ == "__main__":
    main()
