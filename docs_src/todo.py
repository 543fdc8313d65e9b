"""A to-do list: the server that the tutorial builds."""

from typing import Literal

from pydantic import BaseModel

from pegboard import Example, Pegboard, ToolError

board = Pegboard("todo", instructions="A to-do list.")
tasks = board.category("tasks", description="Tasks to do")

Priority = Literal["low", "normal", "high"]


class Task(BaseModel):
    """One task."""

    id: int
    title: str
    priority: Priority = "normal"
    done: bool = False


_tasks: dict[int, Task] = {}


@tasks.tool(
    aliases=["remind me", "add a to-do"],
    examples=[Example("Buy milk soon", {"title": "Buy milk", "priority": "high"})],
    related=["finish_task"],
)
def add_task(title: str, priority: Priority = "normal") -> Task:
    """Add a task.

    Args:
        title: What to do, in one line.
        priority: How urgent it is.
    """
    task = Task(id=len(_tasks) + 1, title=title, priority=priority)
    _tasks[task.id] = task
    return task


@tasks.tool(annotations={"readOnlyHint": True})
def list_tasks(done: bool = False) -> list[Task]:
    """List open tasks, or finished ones."""
    return [task for task in _tasks.values() if task.done == done]


@tasks.tool(annotations={"readOnlyHint": False, "destructiveHint": False})
def finish_task(id: int) -> Task:
    """Mark a task as done."""
    if id not in _tasks:
        raise ToolError(f"There is no task {id}. Call list_tasks to see all tasks.")
    _tasks[id].done = True
    return _tasks[id]


if __name__ == "__main__":
    board.run()
