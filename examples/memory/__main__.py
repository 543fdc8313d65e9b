"""Serve the memory on standard input and output: `python -m examples.memory [DATABASE]`."""

import sys

from .server import build_board

if __name__ == "__main__":
    build_board(*sys.argv[1:2]).run()
