"""Measures how a package is cut into modules and functions, and prints a table.

    python scripts/structure.py                     Pegboard, with the trace of a call
    python scripts/structure.py path/to/starlette   any package, by its folder, for comparison
    python scripts/structure.py --write             write both into docs/decisions/code-structure.md

Every figure but the last comes from the source alone. A "module" is a `.py` file, `__init__.py`
included unless a line below says otherwise.

modules / thousand lines
    All files, and all their lines: code, blank lines, comments and docstrings.
private functions used once
    The share of all functions (module-level, nested, methods) that are private and used once.
    Private: the name starts with exactly one underscore. Used once: the name occurs as a word
    exactly twice in the text of its module, where it is defined and at one other place.
comments per 100 lines
    Comment tokens, whole lines and trailing ones alike. A docstring is not a comment.
modules with a single importer
    Modules that exactly one other module of the package imports. Any import statement counts, also
    one inside a function or under `TYPE_CHECKING`. `__init__.py` is not counted.
modules under 50 lines
    Without `__init__.py`.
repeated basenames
    File names that more than one module has, without `__init__.py`.
public names in two or more modules
    Classes and functions without a leading underscore whose name is defined at the top level of
    two or more modules.
longest function, largest module
    In lines, from the first decorator, or the first line of the file, to the end.
functions / modules touched by one warm `tools/call`
    Functions of the package that run during one call of a tool, and the modules they are in, after
    two calls to warm up. Comprehensions belong to the function around them. The client is the SDK's
    and runs in the same process, connected to a board of decorated functions, and to a gateway with
    one real server behind it: a process of its own on stdio. The gateway is measured twice, with a
    call of the tool by its name and with one through the meta-tool `call_tool`.
"""

from __future__ import annotations

import ast
import io
import re
import sys
import tempfile
import threading
import tokenize
from collections import Counter
from collections.abc import Awaitable, Callable, Generator, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

ROOT = Path(__file__).parents[1]
PEGBOARD = ROOT / "src" / "pegboard"
SERVER = ROOT / "docs_src" / "quickstart.py"
PAGE = ROOT / "docs" / "decisions" / "code-structure.md"
COMPARED = ("starlette", "mcp", "fastmcp")
"""Installed packages whose figures stand beside ours on the page."""
SMALL = 50
"""Lines below which a module counts as small."""
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)


@dataclass(frozen=True)
class Module:
    """One source file: its dotted name, its text and its syntax tree."""

    name: str
    path: Path
    text: str
    tree: ast.Module

    @property
    def lines(self) -> int:
        return len(self.text.splitlines())

    @property
    def is_package(self) -> bool:
        return self.path.stem == "__init__"

    def functions(self) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
        return (node for node in ast.walk(self.tree) if isinstance(node, _FUNCTIONS))


def read_package(folder: Path) -> list[Module]:
    """Every module of the package in a folder, by path."""
    modules: list[Module] = []
    for path in sorted(folder.rglob("*.py")):
        parts = path.relative_to(folder.parent).with_suffix("").parts
        name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
        text = path.read_text("utf-8")
        modules.append(Module(name, path, text, ast.parse(text)))
    return modules


def measure_source(modules: Iterable[Module]) -> dict[str, str]:
    """Each figure that the source alone gives, by its label, as text."""
    modules = list(modules)
    lines = sum(module.lines for module in modules)
    functions = [(m, f) for m in modules for f in m.functions()]
    once = count_private_functions_used_once(modules)
    comments = sum(count_comments(module.text) for module in modules)
    named = [m for m in modules if not m.is_package]
    basenames = Counter(m.path.stem for m in named)
    importers = find_importers(modules)
    longest = max(functions, key=lambda pair: function_length(pair[1]), default=None)
    largest = max(modules, key=lambda module: module.lines)
    return {
        "modules / thousand lines": f"{len(modules)} / {lines / 1000:.1f}",
        "private functions used once": f"{100 * once / max(len(functions), 1):.1f}%",
        "comments per 100 lines": f"{100 * comments / max(lines, 1):.1f}",
        "modules with a single importer": str(sum(len(importers[m.name]) == 1 for m in named)),
        f"modules under {SMALL} lines": str(sum(m.lines < SMALL for m in named)),
        "repeated basenames": str(sum(count > 1 for count in basenames.values())),
        "public names in two or more modules": str(len(find_shared_names(modules))),
        "longest function": (
            f"{function_length(longest[1])} lines: {longest[0].name}.{longest[1].name}"
            if longest
            else "0 lines"
        ),
        "largest module": f"{largest.lines} lines: {largest.name}",
    }


def count_private_functions_used_once(modules: Iterable[Module]) -> int:
    """How many functions with one leading underscore have one use in their module."""
    count = 0
    for module in modules:
        words = Counter(re.findall(r"\w+", module.text))
        private = [f.name for f in module.functions() if re.match(r"_(?!_)", f.name)]
        count += sum(words[name] == 2 for name in private)
    return count


def count_comments(text: str) -> int:
    """How many comments a source text has."""
    tokens = tokenize.generate_tokens(io.StringIO(text).readline)
    return sum(token.type == tokenize.COMMENT for token in tokens)


def function_length(function: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    """The lines of a function, decorators included."""
    first = min([function.lineno, *(d.lineno for d in function.decorator_list)])
    return (function.end_lineno or first) - first + 1


def find_importers(modules: Iterable[Module]) -> dict[str, set[str]]:
    """The modules that import a module, by its dotted name."""
    modules = list(modules)
    importers: dict[str, set[str]] = {module.name: set() for module in modules}
    for module in modules:
        for target in _imports(module, importers.keys()) - {module.name}:
            importers[target].add(module.name)
    return importers


def _imports(module: Module, known: Iterable[str]) -> set[str]:
    """The modules of its own package that a module imports."""
    found: set[str] = set()
    for node in ast.walk(module.tree):
        if isinstance(node, ast.Import):
            found.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            source = node.module or ""
            if node.level:
                # One dot is the package that the module is in, which for a package is itself.
                up = node.level - module.is_package
                parents = module.name.split(".")
                source = ".".join([*parents[: len(parents) - up], *filter(None, [source])])
            for alias in node.names:
                # `from package import x`: a module if there is one of that name, else the package.
                submodule = f"{source}.{alias.name}"
                found.add(submodule if submodule in known else source)
    return found & set(known)


def find_shared_names(modules: Iterable[Module]) -> dict[str, list[str]]:
    """The modules that define a public class or function, for each name that several define."""
    owners: dict[str, list[str]] = {}
    for module in modules:
        defined = [n.name for n in module.tree.body if isinstance(n, (*_FUNCTIONS, ast.ClassDef))]
        for name in {name for name in defined if not name.startswith("_")}:
            owners.setdefault(name, []).append(module.name)
    return {name: found for name, found in sorted(owners.items()) if len(found) > 1}


class Trace:
    """The functions of a package that ran while it was recording."""

    def __init__(self, folder: Path) -> None:
        self._folder = f"{folder.resolve()}/"
        self._recording = False
        self._codes: set[CodeType] = set()

    @contextmanager
    def installed(self) -> Generator[Trace]:
        """Profile this thread and those that start from here on."""
        threading.setprofile(self._profile)
        sys.setprofile(self._profile)
        try:
            yield self
        finally:
            sys.setprofile(None)
            threading.setprofile(None)

    async def record(self, action: Callable[[], Awaitable[Any]]) -> None:
        """Remember the functions that run during one action."""
        self._recording = True
        try:
            await action()
        finally:
            self._recording = False

    def _profile(self, frame: FrameType, event: str, argument: Any) -> None:
        if self._recording and event == "call":
            self._codes.add(frame.f_code)

    def functions(self) -> set[tuple[str, str]]:
        """The path in the package and the qualified name of each function that ran."""
        return {
            (code.co_filename.removeprefix(self._folder), code.co_qualname)
            for code in self._codes
            if code.co_filename.startswith(self._folder)
            and (not code.co_name.startswith("<") or code.co_name == "<lambda>")
        }

    def __str__(self) -> str:
        functions = self.functions()
        return f"{len(functions)} / {len({path for path, _ in functions})}"


async def trace_board_call() -> Trace:
    """What one call of a decorated function runs."""
    from pegboard import Pegboard
    from pegboard.testing import connect

    board = Pegboard("traced")

    @board.tool
    def greet(name: str) -> str:
        """Greet somebody by name."""
        return f"Hello, {name}!"

    with Trace(PEGBOARD).installed() as trace:
        async with connect(board) as client:
            await _record_warm_call(trace, client, "greet", {"name": "Ada"})
    return trace


async def trace_gateway_call(*, mode: str = "eager") -> Trace:
    """What one call runs in a gateway with one server on stdio.

    In mode `eager` the client calls the tool by the name that it is listed under, in mode `proxy`
    through the meta-tool for calls that only read.
    """
    from pegboard.config.loader import Configuration
    from pegboard.config.settings import Settings
    from pegboard.gateway.gateway import Gateway
    from pegboard.gateway.mcp_server import build_gateway_server
    from pegboard.testing import connect
    from pegboard.upstream.spec import UpstreamSpec

    spec = UpstreamSpec(name="notes", command=sys.executable, args=(str(SERVER),))
    configuration = Configuration(Settings(), upstreams=(spec,))
    arguments: dict[str, Any] = {"title": "none"}
    with tempfile.TemporaryDirectory() as folder, Trace(PEGBOARD).installed() as trace:
        async with Gateway(configuration, folder=Path(folder)) as gateway:
            server = build_gateway_server(gateway, environ={"PEGBOARD_MODE": mode})
            async with connect(server) as client:
                if mode == "proxy":
                    through = {"name": "notes.read_note", "arguments": arguments}
                    await _record_warm_call(trace, client, "call_tool", through)
                else:
                    await _record_warm_call(trace, client, "read_note", arguments)
    return trace


async def _record_warm_call(trace: Trace, client: Any, tool: str, arguments: Any) -> None:
    import anyio

    with anyio.fail_after(60):
        name = await _find_listed(client, tool)

        async def call() -> None:
            result = await client.call_tool(name, arguments)
            if result.is_error:
                raise RuntimeError(f"The traced call failed: {result}")

        await call()
        await call()
        await anyio.wait_all_tasks_blocked()  # the first calls may have started background work
        await trace.record(call)


async def _find_listed(client: Any, tool: str) -> str:
    """The name that a tool is listed under, as soon as it is.

    A gateway that starts without a cache needs a moment to list its server. The name must be the
    listed one: for any other the client would list all tools again with each call.
    """
    import anyio

    while True:
        listed = [listed.name for listed in (await client.list_tools()).tools]
        if found := [name for name in listed if name.endswith(tool)]:
            return found[0]
        await anyio.sleep(0.2)


def measure_calls() -> dict[str, str]:
    """The figures of one warm call of Pegboard, by their labels, as text."""
    import anyio

    label = "functions / modules touched by one warm call"
    return {
        f"{label}, board": str(anyio.run(trace_board_call)),
        f"{label}, gateway": str(anyio.run(trace_gateway_call)),
        f"{label}, gateway through `call_tool`": str(
            anyio.run(partial(trace_gateway_call, mode="proxy"))
        ),
    }


def format_figures(tables: dict[str, dict[str, str]]) -> str:
    """The figures of several packages as a table in Markdown, a column each."""
    labels = list(next(iter(tables.values())))
    rows = [["", *tables], ["---"] * (len(tables) + 1)]
    for label in labels:
        # Where the longest function is matters less here than how long it is.
        cells = (table.get(label, "").partition(":")[0] for table in tables.values())
        rows.append([label, *cells])
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


def format_packages(modules: Iterable[Module]) -> str:
    """Modules and lines of each package of Pegboard as a table in Markdown, the largest first."""
    counts: Counter[str] = Counter()
    lines: Counter[str] = Counter()
    for module in modules:
        parts = module.path.relative_to(PEGBOARD).parts
        package = f"`{parts[0]}/`" if len(parts) > 1 else "top-level modules"
        counts[package] += 1
        lines[package] += module.lines
    rows = [
        f"| {package} | {counts[package]} | {total:,} | {total // counts[package]} |"
        for package, total in lines.most_common()
    ]
    head = ["| package | modules | lines | lines per module |", "| --- | --- | --- | --- |"]
    return "\n".join([*head, *rows])


def write_page() -> None:
    """Put the current figures into the page, between its markers."""
    modules = read_package(PEGBOARD)
    tables = {"Pegboard": measure_source(modules) | measure_calls()}
    for name in COMPARED:
        if found := find_spec(name):
            [folder] = found.submodule_search_locations or [""]
            tables[f"{name} {version(name)}"] = measure_source(read_package(Path(folder)))
    text = PAGE.read_text("utf-8")
    parts = {"figures": format_figures(tables), "packages": format_packages(modules)}
    for name, table in parts.items():
        begin, end = f"<!-- {name} -->", f"<!-- end of {name} -->"
        before, _, rest = text.partition(begin)
        text = f"{before}{begin}\n\n{table}\n\n{end}{rest.partition(end)[2]}"
    PAGE.write_text(text, "utf-8")


def main() -> int:
    """Print the table of one package, or write those of the page."""
    if sys.argv[1:] == ["--write"]:
        write_page()
        return 0
    folder = Path(sys.argv[1]).resolve() if len(sys.argv) > 1 else PEGBOARD
    table = measure_source(read_package(folder))
    if folder == PEGBOARD.resolve():
        table |= measure_calls()
    width = max(map(len, table))
    for label, figure in table.items():
        print(f"{label:<{width}}  {figure}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
