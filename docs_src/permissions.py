"""Permission rules on your own board."""

from pegboard import Caller, Pegboard, Policy, Rule, ToolNotFound

policy = Policy([Rule(risks=("read",)), Rule(groups=("sales",), tools=("*_lead",))], default="deny")
board = Pegboard("crm", policy=policy)  # or attach(server, policy=policy)


@board.tool(annotations={"readOnlyHint": True})
def find_lead(name: str) -> str:
    """Find a lead by name."""
    return f"{name} requested a quote"


@board.tool
def create_lead(name: str) -> str:
    """Create a lead."""
    return f"created {name}"


async def main() -> None:
    sales = Caller("ann", groups=frozenset({"sales"}))
    assert not (await board.call("create_lead", {"name": "Eve"}, caller=sales)).is_error
    try:
        await board.call("create_lead", {"name": "Eve"}, caller=Caller("bob"))
    except ToolNotFound:
        return
    raise AssertionError("bob can use this tool")
