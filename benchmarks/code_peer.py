"""FastMCP's CodeMode on our tasks; run by the Python of the peers' environment, never by ours.

code_peer.py PYTHON < tasks.json: prints what its list, its searches, schemas and runs say.
"""

from __future__ import annotations

import ast
import asyncio
import json
import sys
import time
from pathlib import Path
from typing import Any

from fastmcp import Client
from fastmcp.client.transports import StdioTransport
from fastmcp.experimental.transforms.code_mode import CodeMode
from fastmcp.server import create_proxy

ROOT = Path(__file__).parents[1]


class _ToCallTool(ast.NodeTransformer):
    """`await list_issues(limit=5)` as its programs write it: `call_tool("list_issues", {...})`."""

    def __init__(self, names: set[str]) -> None:
        self.names = names

    def visit_Call(self, node: ast.Call) -> ast.AST:
        self.generic_visit(node)
        if not isinstance(node.func, ast.Name) or node.func.id not in self.names:
            return node
        keys: list[ast.expr | None] = [ast.Constant(one.arg) for one in node.keywords]
        arguments = ast.Dict(keys, [one.value for one in node.keywords])
        return ast.Call(ast.Name("call_tool"), [ast.Constant(node.func.id), arguments], [])


def translated(program: str, names: set[str]) -> str:
    """A program in its dialect: nothing is imported, `next` takes no generator, `return` is needed."""
    tree = ast.fix_missing_locations(_ToCallTool(names).visit(ast.parse(program)))
    last = tree.body[-1]
    if isinstance(last, ast.Expr):
        tree.body[-1] = ast.fix_missing_locations(ast.Return(last.value))
    text = ast.unparse(tree)
    start, _, rest = text.partition("next((")
    if rest:
        inner, _, after = rest.partition("))\n")
        text = f"{start}[{inner}][0]\n{after}"
    return f"import asyncio, collections\n{text}"


async def converse(client: Client[Any], task: dict[str, Any], names: set[str]) -> dict[str, Any]:
    said: list[tuple[dict[str, Any], str]] = []

    async def ask(name: str, arguments: dict[str, Any]) -> bool:
        result = await client.call_tool(name, arguments, raise_on_error=False)
        text = "\n".join(block.text for block in result.content if hasattr(block, "text"))
        said.append(({"name": name, "arguments": arguments}, text))
        return not result.is_error

    await ask("search", {"query": task["text"]})
    await ask("get_schema", {"tools": task["needs"]})
    began = time.perf_counter()
    finished = await ask("execute", {"code": translated(task["program"], names)})
    return {"said": said, "finished": finished, "seconds": time.perf_counter() - began}


async def main(python: str) -> None:
    found: dict[str, Any] = {}
    listed: list[dict[str, Any]] = []
    for task in json.load(sys.stdin):
        env = {"PEGBOARD_MODE": "eager", "PYTHONPATH": f"{ROOT / 'src'}:{ROOT}"}
        command = StdioTransport(
            python, ["-m", "benchmarks.code_workspace"], env=env, cwd=str(ROOT)
        )
        server = create_proxy(Client(command), name="tracker")
        names = {tool.name for tool in await server.list_tools()}
        server.add_transform(CodeMode())
        async with Client(server) as client:
            listed = [
                {"name": t.name, "description": t.description, "inputSchema": t.inputSchema}
                for t in await client.list_tools()
            ]
            found[task["name"]] = await converse(client, task, names)
    print(json.dumps({"list": listed, "tasks": found}))


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1]))
