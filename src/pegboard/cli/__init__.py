"""The command line: one file per command."""

from __future__ import annotations

import sys


def main() -> None:
    """Run the command line; exits with 0 on success, 1 failure, 2 wrong usage, 3 configuration."""
    try:
        from pegboard.cli.serve_fast_path import run_fast_path

        # Clients start Pegboard often and wait for it, so Typer and Rich are not imported.
        if run_fast_path(sys.argv[1:]):
            return
        from pegboard.cli.app import run

        run()
    except KeyboardInterrupt:  # also during imports, which take a while
        raise SystemExit(130) from None
