"""Rules on a board of one's own: the how-to on permissions shows this file."""

from pegboard import Caller, Pegboard, Policy, Rule, ToolNotFound

policy = Policy([Rule(risks=("read",)), Rule(groups=("sales",), tools=("*_lead",))], default="deny")
board = Pegboard("crm", policy=policy)  # or attach(server, policy=policy)


@board.tool(annotations={"readOnlyHint": True})
def find_lead(name: str) -> str:
    """Look somebody up."""
    return f"{name} asked for an offer"


@board.tool
def create_lead(name: str) -> str:
    """Note that somebody is interested."""
    return f"noted {name}"


async def main() -> None:
    sales = Caller("ann", groups=frozenset({"sales"}))
    assert not (await board.call("create_lead", {"name": "Eve"}, caller=sales)).is_error
    try:
        await board.call("create_lead", {"name": "Eve"}, caller=Caller("bob"))
    except ToolNotFound:
        return
    raise AssertionError("bob has no such tool")
