"""Catalogs on disk: read back as they were, whatever happens to the disk or the writer."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.upstream.test_catalog_entries import build_tools

from pegboard.core.json import JsonObject
from pegboard.upstream.catalog_cache import (
    CatalogCache,
    ServerProfile,
    build_namespaces,
    compute_identity,
)
from pegboard.upstream.namespaces import Naming
from pegboard.upstream.spec import UpstreamSpec

SPEC = UpstreamSpec(name="files", command="npx", args=("-y", "server"))
ABOUT = ServerProfile(
    server_info={"name": "x", "version": "1"},
    capabilities={"tools": {"listChanged": True}},
    instructions="Be kind.",
    era="modern",
    protocol_version="2026-07-28",
    resources=[{"uri": "a:b", "name": "r"}],
    prompts=[{"name": "p"}],
)


def entries(count: int = 3, mark: str = "") -> list[JsonObject]:
    return [
        {
            "name": f"tool_{i}",
            "description": f"Does {i}. {mark}",
            "inputSchema": {"type": "object", "properties": {f"p{i}": {"type": "string"}}},
            "annotations": {"readOnlyHint": True},
            "icons": [{"src": "i"}],
            "_meta": {"k": i},
        }
        for i in range(count)
    ]


def folder(tmp_path: Path) -> tuple[CatalogCache, list[str]]:
    said: list[str] = []
    return CatalogCache(tmp_path / "kept", warn=said.append), said


def test_nothing_is_known_of_a_server_that_was_never_listed(tmp_path: Path) -> None:
    kept, said = folder(tmp_path)
    assert kept.load(SPEC) is None
    assert said == []


def test_a_cached_catalog_reads_back_the_same(tmp_path: Path) -> None:
    kept, _ = folder(tmp_path)
    kept.save(SPEC, ABOUT, entries())
    found = kept.load(SPEC)
    assert found is not None
    assert found.about == ABOUT
    assert found.entries() == entries()
    assert found.tools(SPEC) == build_tools(entries(), server="files")[0]
    assert found.saved_at > 0


def test_saving_gives_back_what_loading_would(tmp_path: Path) -> None:
    kept, _ = folder(tmp_path)
    saved, loaded = kept.save(SPEC, ABOUT, entries()), kept.load(SPEC)
    assert loaded is not None
    assert (saved.hash, saved.entries()) == (loaded.hash, loaded.entries())


def test_schemas_are_parsed_when_needed_and_not_held(tmp_path: Path) -> None:
    kept, _ = folder(tmp_path)
    kept.save(SPEC, ABOUT, entries())
    (path,) = (tmp_path / "kept").iterdir()
    found = kept.load(SPEC)
    assert found is not None
    path.unlink()
    tool = found.tools(SPEC)[1]
    assert tool.input_schema == entries()[1]["inputSchema"]
    assert tool.input_schema is not tool.input_schema


def test_the_current_configuration_applies_to_a_cached_catalog(tmp_path: Path) -> None:
    kept, _ = folder(tmp_path)
    kept.save(SPEC, ABOUT, entries())
    today = replace(SPEC, exclude=("tool_1",), category="c", prefix="f")
    found = kept.load(today)
    assert found is not None
    tools = found.tools(today, build_namespaces([today], Naming(separator="-")))
    assert [(t.name, t.category) for t in tools] == [("f-tool_0", "c"), ("f-tool_2", "c")]


def test_the_seconds_of_a_call_are_left_to_the_connection(tmp_path: Path) -> None:
    kept, _ = folder(tmp_path)
    kept.save(SPEC, ABOUT, entries())
    found = kept.load(replace(SPEC, timeout=5.0))
    assert found is not None
    assert {t.timeout for t in found.tools(SPEC)} == {None}


def test_bad_entries_are_reported_again_after_reading(tmp_path: Path) -> None:
    kept, _ = folder(tmp_path)
    kept.save(SPEC, ABOUT, [*entries(1), {"name": "bad"}])
    found = kept.load(SPEC)
    assert found is not None
    assert len(found) == 1
    assert [str(p) for p in found.problems] == [
        "files: bad: it has no `inputSchema` object; it is left out."
    ]


def test_the_hash_changes_exactly_with_the_tools(tmp_path: Path) -> None:
    kept, _ = folder(tmp_path)
    first = kept.save(SPEC, ABOUT, entries())
    assert kept.save(SPEC, ServerProfile(), entries()).hash == first.hash
    assert kept.save(SPEC, ABOUT, entries(mark="new")).hash != first.hash


@pytest.mark.parametrize(
    "change",
    [
        {"name": "other"},
        {"command": "other"},
        {"args": ("-y",)},
        {"cwd": "/x"},
        {"env": {"MODE": "b"}},
        {"env": {"API_TOKEN": "a"}},
        {"headers": {"X": "1"}},
        {"transport": "http", "command": None, "args": (), "url": "https://h"},
    ],
)
def test_another_server_has_another_identity(change: dict[str, Any]) -> None:
    assert compute_identity(replace(SPEC, **change)) != compute_identity(SPEC)


def test_a_new_token_is_no_new_server() -> None:
    one = replace(SPEC, env={"API_TOKEN": "a", "MODE": "x"}, headers={"Authorization": "a"})
    two = replace(SPEC, env={"API_TOKEN": "b", "MODE": "x"}, headers={"authorization": "b"})
    assert compute_identity(one) == compute_identity(two)
    assert compute_identity(one) != compute_identity(
        replace(one, env={"API_TOKEN": "a", "MODE": "y"})
    )


def test_what_only_shapes_the_listing_is_no_part_of_the_identity() -> None:
    shaped = replace(SPEC, include=("a",), category="c", prefix="p", timeout=1.0, mode="eager")
    assert compute_identity(shaped) == compute_identity(SPEC)


def test_no_secret_is_written(tmp_path: Path) -> None:
    kept, _ = folder(tmp_path)
    spec = UpstreamSpec(
        name="web",
        transport="http",
        url="https://u:s3cret@h/mcp?key=s3cret",
        headers={"Authorization": "s3cret"},
        env={"TOKEN": "s3cret", "PLAIN": "s3cret"},
    )
    kept.save(spec, ABOUT, entries())
    (path,) = (tmp_path / "kept").iterdir()
    assert b"s3cret" not in path.read_bytes()
    assert "s3cret" not in path.name
    assert path.stat().st_mode & 0o077 == 0


@pytest.mark.parametrize("cut", [0, 1, 30, 150, 400, -1])
def test_a_file_that_is_cut_short_is_ignored_and_written_anew(tmp_path: Path, cut: int) -> None:
    kept, said = folder(tmp_path)
    kept.save(SPEC, ABOUT, entries())
    (path,) = (tmp_path / "kept").iterdir()
    path.write_bytes(path.read_bytes()[:cut])
    assert kept.load(SPEC) is None
    assert "not usable and is ignored" in said[0]
    kept.save(SPEC, ABOUT, entries())
    assert kept.load(SPEC) is not None
    assert len(said) == 1


@given(at=st.integers(min_value=0), byte=st.integers(0, 255))
def test_no_single_damaged_byte_goes_unnoticed(
    at: int, byte: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    kept, _ = folder(tmp_path_factory.mktemp("damage"))
    kept.save(SPEC, ABOUT, entries())
    (path,) = kept.folder.iterdir()
    good = path.read_bytes()
    damaged = bytearray(good)
    damaged[at % len(good)] = byte
    path.write_bytes(damaged)
    found = kept.load(SPEC)
    assert (found is not None) == (bytes(damaged) == good)


def test_a_file_of_a_later_version_is_ignored(tmp_path: Path) -> None:
    kept, said = folder(tmp_path)
    kept.save(SPEC, ABOUT, entries())
    (path,) = (tmp_path / "kept").iterdir()
    path.write_bytes(path.read_bytes().replace(b"catalog 1", b"catalog 2", 1))
    assert kept.load(SPEC) is None
    assert "another kind or version" in said[0]


def test_a_folder_that_cannot_be_written_is_reported_once_and_costs_nothing(tmp_path: Path) -> None:
    (tmp_path / "kept").write_text("a file where the folder should be")
    kept, said = folder(tmp_path)
    assert kept.load(SPEC) is None
    assert kept.save(SPEC, ABOUT, entries()).entries() == entries()
    assert kept.save(SPEC, ABOUT, entries()).about == ABOUT
    assert len(said) == 1
    assert "cannot be stored" in said[0]


PROGRAM = """
import sys
from pathlib import Path
from pegboard.upstream.catalog_cache import ServerProfile, CatalogCache
from pegboard.upstream.spec import UpstreamSpec
SPEC = UpstreamSpec(name="files", command="npx", args=("-y", "server"))
kept = CatalogCache(Path(sys.argv[1]), warn=lambda text: print("WARNING", text))
def save(count, mark=""):
    schema = {"type": "object", "properties": {"p": {"type": "string"}}}
    made = [{"name": f"t{i}", "description": f"{i} {mark}", "inputSchema": schema}
            for i in range(count)]
    return len(kept.save(SPEC, ServerProfile(), made))
"""

FULL_DISK = """
import resource
save(3)
resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))
print(save(200), save(300))
print(len(kept.load(SPEC)), len(list(kept.folder.iterdir())))
"""

WRITER = """
for number in range(int(sys.argv[2])):
    save(200, f"{sys.argv[3]}{number}")
    print(number, flush=True)
"""


def start(code: str, *arguments: str) -> subprocess.Popen[str]:
    """Run a gateway's part in this in a process of its own."""
    return subprocess.Popen(
        [sys.executable, "-c", PROGRAM + code, *arguments], stdout=subprocess.PIPE, text=True
    )


@pytest.mark.skipif(os.name != "posix", reason="file size limits are POSIX")
def test_a_full_disk_leaves_the_old_catalog_and_is_reported_once(tmp_path: Path) -> None:
    with start(FULL_DISK, str(tmp_path / "kept")) as process:
        output, _ = process.communicate(timeout=60)
    warning, lengths, after = output.splitlines()
    assert warning.startswith("WARNING Catalogs cannot be stored")
    assert lengths == "200 300"  # what was listed is usable all the same
    assert after == "3 1"  # the old one is there, and no remains


@pytest.mark.skipif(os.name != "posix", reason="kill -9 is POSIX")
def test_a_writer_killed_in_the_middle_leaves_a_whole_catalog(tmp_path: Path) -> None:
    kept, said = folder(tmp_path)
    for saves in range(1, 4):
        with start(WRITER, str(kept.folder), "100000", "w") as process:
            assert process.stdout is not None
            for _ in range(saves):
                process.stdout.readline()
            process.send_signal(signal.SIGKILL)
        found = kept.load(SPEC)
        assert found is not None
        assert len(found.entries()) == 200
    assert said == []
    kept.sweep(now=kept.load(SPEC).saved_at + 7200)  # pyright: ignore[reportOptionalMemberAccess]
    assert [p.suffix for p in kept.folder.iterdir()] == [".catalog"]


def test_several_gateways_write_and_read_at_once(tmp_path: Path) -> None:
    kept, said = folder(tmp_path)
    kept.save(SPEC, ABOUT, entries(200))
    writers = [start(WRITER, str(kept.folder), "10", mark) for mark in "abc"]

    def mark() -> str:
        found = kept.load(SPEC)
        assert found is not None
        (only,) = {e["description"].rpartition(" ")[2] for e in found.entries()}
        return only

    while any(writer.poll() is None for writer in writers):
        assert mark()[:1] in ("", "a", "b", "c")
    assert [writer.wait() for writer in writers] == [0, 0, 0]
    for writer in writers:
        assert writer.stdout is not None
        writer.stdout.close()
    assert said == []
    assert mark() in ("a9", "b9", "c9")


def test_an_unchanged_catalog_is_not_written_again(tmp_path: Path) -> None:
    kept, _ = folder(tmp_path)
    kept.save(SPEC, ABOUT, entries())
    (path,) = kept.folder.iterdir()
    before = path.stat()
    os.utime(path, (1, 1))
    kept.save(SPEC, ABOUT, entries())
    after = path.stat()
    assert after.st_ino == before.st_ino
    assert after.st_mtime >= before.st_mtime


def test_forgetting_and_sweeping(tmp_path: Path) -> None:
    kept, _ = folder(tmp_path)
    saved = kept.save(SPEC, ABOUT, entries())
    other = replace(SPEC, name="other")
    kept.save(other, ABOUT, entries())
    kept.forget(other)
    assert kept.load(other) is None
    assert kept.sweep(now=saved.saved_at + 86_400) == 0
    assert kept.sweep(now=saved.saved_at + 100 * 86_400) == 1
    assert kept.load(SPEC) is None
    assert CatalogCache(tmp_path / "none").sweep(now=0) == 0


def test_text_that_is_no_valid_unicode_survives(tmp_path: Path) -> None:
    kept, _ = folder(tmp_path)
    odd = {"name": "odd", "description": "\ud800 \x00 é", "inputSchema": {"title": "\udfff"}}
    kept.save(SPEC, ABOUT, [odd])
    found = kept.load(SPEC)
    assert found is not None
    assert found.entries() == [odd]
