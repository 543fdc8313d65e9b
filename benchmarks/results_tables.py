"""Tokens of the same results in several encodings, as JSON; TOON where `toons` is installed.

PYTHONPATH=src:. python benchmarks/results_tables.py
"""

from __future__ import annotations

import importlib
import json
from typing import Any

from benchmarks.results_data import listings
from benchmarks.timing import milliseconds
from pegboard.core.json import compact
from pegboard.core.results.table_format import decode_table, encode_table
from pegboard.tokens import DEFAULT_TOKENIZER, count_tokens


def main() -> None:
    found = {
        f"{name}, {rows} rows": encodings(value)
        for rows in (3, 10, 100)
        for name, value in listings(rows).items()
        if name not in ("tree", "log")
    }
    issues = listings(200)["issues"]
    time = {
        "bytes": len(compact(issues)),
        "encode, ms": milliseconds(lambda: encode_table(issues), 30),
        "decode, ms": milliseconds(lambda: decode_table(encode_table(issues) or ""), 30),
    }
    print(json.dumps({"tokenizer": DEFAULT_TOKENIZER, "tokens": found, "time": time}, indent=2))


def encodings(value: Any) -> dict[str, Any]:
    table = encode_table(value)
    if table is None or decode_table(table) != value:
        raise SystemExit("A table lost something.")
    texts = {
        "indented JSON": json.dumps(value, indent=2, ensure_ascii=False),
        "JSON": compact(value),
        "TOON": toon(value),
        "table": table,
    }
    return {name: count_tokens(text) for name, text in texts.items() if text is not None}


def toon(value: Any) -> str | None:
    try:
        return importlib.import_module("toons").dumps(value)
    except ImportError:
        return None


if __name__ == "__main__":
    main()
