from __future__ import annotations

import json
from typing import Any


def understood(tool_name: str, raw: Any, schema: Any, *, coerce: bool = True) -> Any:
    return json.loads(raw) if isinstance(raw, str) else (raw or {})


def check_examples(tool: Any) -> None: ...
