"""Runs the command line: in this process where that shows the same, else in one of its own."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pegboard.cli.app import run

ROOT = Path(__file__).parents[2]


@dataclass(frozen=True)
class Ran:
    """What a command left."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)


def pegboard(*words: str, home: Path, typed: str = "", **env: str) -> Ran:
    """Run a command here, with a home folder of its own and no terminal."""
    out, err = io.StringIO(), io.StringIO()
    kept, around = dict(os.environ), _around(home, env)
    os.environ.clear()
    os.environ.update(around)
    stdin, sys.stdin = sys.stdin, io.StringIO(typed)
    try:
        with redirect_stdout(out), redirect_stderr(err):
            run(words)
        code = 0
    except SystemExit as exc:
        code = int(exc.code or 0)
    finally:
        sys.stdin = stdin
        os.environ.clear()
        os.environ.update(kept)
    return Ran(code, out.getvalue(), err.getvalue())


def process(*words: str, home: Path, **env: str) -> Ran:
    """Run a command as a process of its own, where terminals and code pages matter."""
    done = subprocess.run(
        [sys.executable, "-m", "pegboard", *words],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        env=_around(home, env),
        cwd=ROOT,
        check=False,
        timeout=60,
    )
    encoding = env.get("PYTHONIOENCODING", "utf-8")
    return Ran(done.returncode, done.stdout.decode(encoding), done.stderr.decode(encoding))


def _around(home: Path, env: dict[str, str]) -> dict[str, str]:
    ours = ("XDG_", "PEGBOARD_", "COLUMNS")
    kept = {name: value for name, value in os.environ.items() if not name.startswith(ours)}
    return {**kept, "HOME": str(home), "PEGBOARD_HOME": str(home / "cache"), **env}
