"""The command line: one file per command."""

from __future__ import annotations


def main() -> None:
    """Run the command line; exits 0 done, 1 failed, 2 wrong use, 3 configuration."""
    from pegboard.cli.app import run

    run()
