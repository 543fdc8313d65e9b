"""Starts the gateway inside an MCPB bundle, with the file that the user chose in the client."""

from __future__ import annotations

import os
import sys

from pegboard.cli import main

chosen = os.environ.pop("PEGBOARD_BUNDLE_CONFIG", "").strip()
# A client leaves the placeholder in place where the user chose nothing.
has_file = bool(chosen) and not chosen.startswith("${")
sys.argv = ["pegboard", "serve", *(["--config", chosen] if has_file else [])]
if os.environ.get("PEGBOARD_PROFILE", "").startswith("${"):
    del os.environ["PEGBOARD_PROFILE"]
main()
