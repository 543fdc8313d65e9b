"""The files around the package agree with it; `make package` builds it and tests the result."""

from __future__ import annotations

import json
import re
import runpy
import tomllib
from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML

from pegboard import __version__
from pegboard.core.options import MODES

ROOT = Path(__file__).parents[2]
WORKFLOWS = sorted((ROOT / ".github/workflows").glob("*.yml"))


@pytest.fixture
def package() -> dict[str, Any]:
    return runpy.run_path(str(ROOT / "scripts/package.py"))


def test_every_file_names_the_same_version(package: dict[str, Any]) -> None:
    assert package["read_version"]() == __version__
    package["check_versions"](__version__)
    with pytest.raises(SystemExit, match="the version is 9"):
        package["check_versions"]("9.9.9")


def test_the_images_of_the_examples_have_that_version() -> None:
    for name in ("Dockerfile", "kubernetes.yaml"):
        found = re.findall(r"pegboard:(\d+\.\d+\.\d+)", (ROOT / "deploy" / name).read_text())
        assert set(found) == {__version__}


def test_the_entry_for_the_registry_fits_its_rules() -> None:
    server = json.loads((ROOT / "server.json").read_text("utf-8"))
    assert re.fullmatch(r"[a-zA-Z0-9.-]+/[a-zA-Z0-9._-]+", server["name"])
    assert len(server["description"]) <= 100
    modes = next(v for v in server["packages"][0]["environmentVariables"] if "choices" in v)
    assert set(modes["choices"]) == {"auto", *MODES}
    # The registry looks for this line in the description on the package index.
    assert f"mcp-name: {server['name']}" in (ROOT / "README.md").read_text("utf-8")


def test_the_readme_of_the_package_index_has_absolute_links() -> None:
    hook = runpy.run_path(str(ROOT / "packaging/readme.py"))
    text = "![a](docs/a.png) [b](docs/b.md#c) [d](https://e.example/f) [g](#h)"
    assert hook["absolute_links"](text, "1.2.3") == (
        "![a](https://raw.githubusercontent.com/pegboard/pegboard/v1.2.3/docs/a.png) "
        "[b](https://github.com/pegboard/pegboard/blob/v1.2.3/docs/b.md#c) "
        "[d](https://e.example/f) [g](#h)"
    )


def test_the_bundle_takes_the_wheel_that_is_built() -> None:
    project = tomllib.loads((ROOT / "packaging/mcpb/pyproject.toml").read_text("utf-8"))
    wheel = project["tool"]["uv"]["sources"]["pegboard"]["path"]
    assert wheel == f"pegboard-{__version__}-py3-none-any.whl"
    manifest = json.loads((ROOT / "packaging/mcpb/manifest.json").read_text("utf-8"))
    assert (ROOT / "packaging/mcpb" / manifest["server"]["entry_point"]).is_file()


@pytest.mark.parametrize("path", WORKFLOWS, ids=[path.stem for path in WORKFLOWS])
def test_workflows_ask_for_no_more_rights_than_they_need(path: Path) -> None:
    workflow = YAML(typ="safe").load(path.read_text("utf-8"))
    assert workflow["permissions"] == {"contents": "read"}
    targets = re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text("utf-8"), re.MULTILINE)
    for job in workflow["jobs"].values():
        for step in job["steps"]:
            if "checkout" in step.get("uses", ""):
                assert step["with"]["persist-credentials"] is False
            for target in re.findall(r"\bmake ([a-z-]+)", step.get("run", "")):
                assert target in targets
            # A tag can be moved to other code; a commit cannot.
            assert re.search(r"@[0-9a-f]{40}$", step.get("uses", f"@{'0' * 40}")), step
    assert "password" not in path.read_text("utf-8").replace("there is no password", "")
