"""Builds wheel, source distribution and MCPB bundle, and tests the built files, not the checkout.

    python scripts/package.py [--quick]

Each Python from 3.11 to 3.14 that is found gets an environment of its own with the wheel, and the
oldest one a second time with the lowest versions that `pyproject.toml` allows. `--quick` tests one
environment. Everything is written into `dist/`: the files, an SBOM, and a report with the size and
the number of packages of an installation.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import tomllib
import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[1]
DIST = ROOT / "dist"
PYTHONS = ("3.11", "3.12", "3.13", "3.14")
MAX_PACKAGES = 50
MAX_MEGABYTES = 195
"""Limits for an installation without extras, so that growth is a decision."""

_IN_WHEEL = (
    "pegboard/install/clients.toml",
    "pegboard/modes/clients.toml",
    "pegboard/embed/weights/encoder_words.npy",
    "pegboard/examples/tracker/__main__.py",
    "pegboard/py.typed",
)
_SMOKE = """
import importlib, pkgutil, sys
import pegboard
from pegboard import Pegboard
board = Pegboard("smoke")

@board.tool(category="letters")
def send_letter(to: str, text: str = "") -> str:
    "Send a letter to somebody."
    return f"sent to {to}"

import anyio
assert board.search("write to a friend"), "search works"
assert anyio.run(board.call, "send_letter", {"to": "ada"}).content[0]["text"] == "sent to ada"
optional = ("redis", "prometheus", "fastmcp", "keyring", "monty", "pytest")
for module in pkgutil.walk_packages(pegboard.__path__, "pegboard."):
    if module.name.endswith("__main__") or ".examples." in module.name:
        continue
    try:
        importlib.import_module(module.name)
    except ImportError as exc:
        if not any(name in str(exc) for name in optional):
            raise
"""


@dataclass(frozen=True)
class Installation:
    """One environment in which the built package was tested."""

    python: str
    dependencies: str
    packages: int
    megabytes: float


def main() -> int:
    """Build and test; returns the exit status."""
    version = read_version()
    check_versions(version)
    wheel, sdist = build()
    check_contents(wheel, sdist)
    bundle = build_bundle(wheel, version)
    with tempfile.TemporaryDirectory(prefix="pegboard-package-") as folder:
        found = test_all(wheel, Path(folder), quick="--quick" in sys.argv)
        test_bundle(bundle, Path(folder))
    write_report([wheel, sdist, bundle], found)
    too_large = [
        one for one in found if one.packages > MAX_PACKAGES or one.megabytes > MAX_MEGABYTES
    ]
    for one in too_large:
        print(f"error: an installation has {one.packages} packages and {one.megabytes:.0f} MB")
    return 1 if too_large else 0


# --- building -------------------------------------------------------------------------------------


def read_version() -> str:
    return tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["version"]


def check_versions(version: str) -> None:
    """Check that every file that names the version names this one."""
    server = json.loads((ROOT / "server.json").read_text("utf-8"))
    manifest = json.loads((ROOT / "packaging/mcpb/manifest.json").read_text("utf-8"))
    project = tomllib.loads((ROOT / "packaging/mcpb/pyproject.toml").read_text("utf-8"))
    named = {
        "server.json": server["version"],
        "server.json, package": server["packages"][0]["version"],
        "manifest.json": manifest["version"],
        "bundle": project["project"]["version"],
        "dependency of the bundle": project["project"]["dependencies"][0].partition("==")[2],
    }
    wrong = {where: found for where, found in named.items() if found != version}
    if wrong:
        raise SystemExit(f"error: the version is {version}, but these say otherwise: {wrong}")


def build() -> tuple[Path, Path]:
    """The wheel, built from the source distribution, and the source distribution."""
    shutil.rmtree(DIST, ignore_errors=True)
    uv("build", "--quiet", "--no-build-isolation", "--python", sys.executable, "--out-dir", DIST)
    (DIST / ".gitignore").unlink(missing_ok=True)
    (wheel,), (sdist,) = DIST.glob("*.whl"), DIST.glob("*.tar.gz")
    return wheel, sdist


def check_contents(wheel: Path, sdist: Path) -> None:
    """Check that nothing is missing, and that nothing of this machine was packed."""
    with zipfile.ZipFile(wheel) as file:
        names = set(file.namelist())
        (metadata,) = (name for name in names if name.endswith(".dist-info/METADATA"))
        description = file.read(metadata).decode("utf-8")
    with tarfile.open(sdist) as file:
        sources = {name.partition("/")[2] for name in file.getnames()}
    missing = [name for name in _IN_WHEEL if name not in names]
    missing += [n for n in ("LICENSE", "README.md", "CHANGELOG.md") if n not in sources]
    if missing:
        raise SystemExit(f"error: not packed: {', '.join(missing)}")
    if relative := re.findall(r"\]\((?!https?:|#)[^)]+\)", description):
        raise SystemExit(f"error: links that the package index cannot follow: {relative[:3]}")
    if "mcp-name: " not in description:  # the MCP registry looks for it there
        raise SystemExit("error: the description has no line `mcp-name`")
    unwanted = ("tests/", "__pycache__", ".venv", "node_modules")
    packed = [n for n in sorted(names) if any(part in n for part in unwanted)]
    packed += [n for n in sorted(sources) if any(part in n for part in unwanted[1:])]
    if packed:
        raise SystemExit(f"error: packed by mistake: {', '.join(packed[:5])}")


def build_bundle(wheel: Path, version: str) -> Path:
    """An MCPB bundle: the manifest, a project that depends on the wheel, and the wheel itself."""
    path = DIST / f"pegboard-{version}.mcpb"
    source = ROOT / "packaging/mcpb"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as bundle:
        for name in ("manifest.json", "pyproject.toml", "server/main.py"):
            bundle.write(source / name, name)
        bundle.write(wheel, wheel.name)
    return path


# --- testing --------------------------------------------------------------------------------------


def test_all(wheel: Path, folder: Path, *, quick: bool) -> list[Installation]:
    """Install and use the wheel on every Python that is found."""
    pythons = {name: path for name in PYTHONS if (path := find_python(name))}
    print(f"Pythons: {', '.join(pythons)}; not found: {', '.join(set(PYTHONS) - set(pythons))}")
    oldest = min(pythons, key=PYTHONS.index)
    runs = [(name, "newest") for name in pythons] + [(oldest, "lowest")]
    found: list[Installation] = []
    for name, dependencies in runs[:1] if quick else runs:
        place = folder / f"{name}-{dependencies}"
        found.append(install(wheel, place, name, pythons[name], dependencies))
        use(place, folder / f"home-{name}-{dependencies}")
        print(f"{name}, {dependencies} dependencies: works")
        if not (place / "sbom").exists() and len(found) == 1:
            write_sbom(place)
        shutil.rmtree(place)
    return found


def find_python(version: str) -> str | None:
    """The path of a Python of this version on this machine."""
    done = subprocess.run(
        [*_uv(), "python", "find", "--no-python-downloads", "--system", version],
        capture_output=True,
        text=True,
        check=False,
    )
    if found := done.stdout.strip():
        return found
    # pyenv keeps the versions that are not in use outside of the search path.
    pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")) / "versions"
    return next((str(path) for path in sorted(pyenv.glob(f"{version}.*/bin/python"))), None)


def install(wheel: Path, place: Path, python: str, path: str, dependencies: str) -> Installation:
    uv("venv", "--quiet", "--python", path, place)
    resolution = "lowest-direct" if dependencies == "lowest" else "highest"
    interpreter = _interpreter(place)
    uv("pip", "install", "--quiet", "--python", interpreter, "--resolution", resolution, wheel)
    listed = subprocess.run(
        [*_uv(), "pip", "list", "--quiet", "--format", "json", "--python", interpreter],
        capture_output=True,
        check=True,
    )
    size = sum(file.stat().st_size for file in place.rglob("*") if file.is_file())
    return Installation(python, dependencies, len(json.loads(listed.stdout)), size / 1_000_000)


def use(place: Path, home: Path) -> None:
    """Use the installed package as a library and as a command, outside the checkout."""
    home.mkdir()
    interpreter = _interpreter(place)
    command = interpreter.with_name("pegboard")
    run([interpreter, "-W", "error::DeprecationWarning:pegboard", "-c", _SMOKE], home)
    run([command, "--version"], home)
    run([command], home)
    run([command, "demo", "--json"], home)
    servers = {
        "tracker": {"command": str(interpreter), "args": ["-m", "pegboard.examples.tracker"]}
    }
    file = home / ".cursor" / "mcp.json"
    file.parent.mkdir()
    file.write_text(json.dumps({"mcpServers": servers}))
    shown = json.loads(run([command, "install", "cursor", "--dry-run", "--json"], home))
    if not shown["tokens"]["before"]:
        raise SystemExit("error: the installed package did not measure a client")


def test_bundle(bundle: Path, folder: Path) -> None:
    """Start a bundle as a client does, and list its tools."""
    place, home = folder / "bundle", folder / "home-bundle"
    with zipfile.ZipFile(bundle) as file:
        file.extractall(place)
    manifest = json.loads((place / "manifest.json").read_text("utf-8"))
    config = manifest["server"]["mcp_config"]
    home.mkdir()
    servers = {"tracker": {"command": "python", "args": ["-m", "pegboard.examples.tracker"]}}
    (home / "mcp.json").write_text(json.dumps({"mcpServers": servers}))
    chosen = {"${__dirname}": str(place), "${user_config.config}": str(home / "mcp.json")}
    words = [chosen.get(word, word) for word in config["args"]]
    env = {name: chosen.get(value, value) for name, value in config["env"].items()}
    hello = {"protocolVersion": "2025-11-25", "capabilities": {},
             "clientInfo": {"name": "package", "version": "1"}}  # fmt: skip
    messages: list[dict[str, object]] = [
        {"id": 1, "method": "initialize", "params": hello},
        {"method": "notifications/initialized"},
        {"id": 2, "method": "tools/list"},
    ]
    answers = run([*_uv(), *words], home, {**env, "PATH": os.environ["PATH"]}, messages)
    if '"name":"pegboard"' not in answers.replace(" ", "") or '"id":2' not in answers.replace(
        " ", ""
    ):
        raise SystemExit(f"error: the bundle did not answer: {answers[:500]}")
    print("MCPB bundle: works")


def run(
    command: Sequence[str | Path],
    home: Path,
    more: Mapping[str, str] | None = None,
    messages: Sequence[Mapping[str, object]] = (),
) -> str:
    """What a command prints, with a home of its own; `messages` are sent to it as JSON-RPC."""
    lines = "".join(json.dumps({"jsonrpc": "2.0", **message}) + "\n" for message in messages)
    env = {k: v for k, v in os.environ.items() if not k.startswith(("PEGBOARD_", "PYTHON", "XDG_"))}
    done = subprocess.run(
        [str(word) for word in command],
        cwd=home,
        env={**env, "HOME": str(home), "PEGBOARD_HOME": str(home / "cache"), **(more or {})},
        input=lines,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    if done.returncode:
        raise SystemExit(f"error: {command[0]} {command[1:]} failed:\n{done.stdout}{done.stderr}")
    return done.stdout


# --- what comes out -------------------------------------------------------------------------------


def write_sbom(place: Path) -> None:
    """The packages of an installation as CycloneDX."""
    listed = subprocess.run(
        [*_uv(), "pip", "list", "--quiet", "--format", "json", "--python", _interpreter(place)],
        capture_output=True,
        check=True,
    )
    components = [
        {
            "type": "library",
            "name": one["name"],
            "version": one["version"],
            "purl": f"pkg:pypi/{one['name']}@{one['version']}",
        }
        for one in json.loads(listed.stdout)
    ]
    sbom = {"bomFormat": "CycloneDX", "specVersion": "1.6", "version": 1, "components": components}
    (DIST / "sbom.cdx.json").write_text(json.dumps(sbom, indent=2) + "\n", "utf-8")


def write_report(files: Sequence[Path], found: Sequence[Installation]) -> None:
    """The sizes, as a table for people and for the summary of a CI run."""
    lines = ["| file | MB | SHA-256 |", "|---|---|---|"]
    for path in files:
        digest = hashlib.sha256(path.read_bytes()).hexdigest()
        lines.append(f"| {path.name} | {path.stat().st_size / 1_000_000:.1f} | `{digest}` |")
    lines += ["", "| Python | dependencies | packages | MB installed |", "|---|---|---|---|"]
    lines += [
        f"| {one.python} | {one.dependencies} | {one.packages} | {one.megabytes:.0f} |"
        for one in found
    ]
    text = "\n".join(lines) + "\n"
    (DIST / "package-report.md").write_text(text, "utf-8")
    print(text)


def uv(*arguments: str | Path, env: Mapping[str, str] | None = None) -> None:
    command = [*_uv(), *(str(word) for word in arguments)]
    subprocess.run(command, cwd=ROOT, check=True, env=env)


def _uv() -> list[str]:
    return [sys.executable, "-m", "uv"]


def _interpreter(place: Path) -> Path:
    return place / ("Scripts/python.exe" if os.name == "nt" else "bin/python")


if __name__ == "__main__":
    sys.exit(main())
