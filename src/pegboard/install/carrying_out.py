"""Carrying out a plan: our own files first, the client's file last, each whole or not at all."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path

from pegboard.install import files
from pegboard.install.files import digest
from pegboard.install.plan import Plan
from pegboard.install.records import Ours, Record, read_record


def install(plan: Plan) -> None:
    """Write what the plan says.

    Raises:
        ConfigError: The client's file was changed meanwhile, or cannot be written; it is then as
            it was.
    """
    with files.locked(plan.ours.folder.parent):
        if not plan.is_change and read_record(plan.ours) is not None:
            return
        files.refuse_changed(plan.content)
        with _ours_restored_on_failure(plan.ours):
            _install(plan)


def _install(plan: Plan) -> None:
    ours = plan.ours
    if plan.kept is not None:
        files.write(ours.kept, plan.kept)
    if plan.settings is not None and not ours.settings.exists():
        files.write(ours.settings, plan.settings)
    if plan.before is not None:
        files.write(ours.backup, plan.before)
    else:
        ours.backup.unlink(missing_ok=True)
    earlier = read_record(ours)
    made = (*(earlier.made if earlier else ()), *map(str, _missing_folders(plan.path)))
    files.write(ours.record, _record(plan, tuple(dict.fromkeys(made))).text().encode())
    if plan.after is not None:
        files.replace_expected(plan.content, plan.after)


@contextmanager
def _ours_restored_on_failure(ours: Ours) -> Generator[None]:
    """Leave our own files as they were where the client's file could not be written."""
    paths = (ours.kept, ours.settings, ours.backup, ours.record)
    before = {path: path.read_bytes() if path.exists() else None for path in paths}
    try:
        yield
    except BaseException:
        for path, data in before.items():
            if data is None:
                path.unlink(missing_ok=True)
            else:
                files.write(path, data)
        raise


def uninstall(plan: Plan) -> None:
    """Put the client's file back, and remove what was kept for it.

    A `pegboard.toml` that somebody has changed stays.
    """
    with files.locked(plan.ours.folder.parent):
        _uninstall(plan)


def _uninstall(plan: Plan) -> None:
    files.refuse_changed(plan.content)
    record = read_record(plan.ours)
    if plan.after is None:
        plan.path.unlink(missing_ok=True)
        for folder in record.made if record else ():
            with suppress(OSError):  # somebody else keeps something there by now
                Path(folder).rmdir()
    elif plan.is_change:
        files.replace_expected(plan.content, plan.after)
    _remove_ours(plan, record)


def _remove_ours(plan: Plan, record: Record | None) -> None:
    ours = plan.ours
    gone = [ours.kept, ours.backup, ours.record]
    settings = ours.settings.read_bytes() if ours.settings.exists() else None
    if record and settings is not None and digest(settings) == record.settings:
        gone.append(ours.settings)
    for path in gone:
        path.unlink(missing_ok=True)
    for folder in (ours.kept.parent, ours.folder):
        with suppress(OSError):
            folder.rmdir()


def _record(plan: Plan, made: tuple[str, ...]) -> Record:
    return Record(
        client=plan.client.key,
        file=str(plan.path),
        mode=plan.mode,
        before=digest(plan.before),
        after=digest(plan.after),
        kept=digest(plan.kept),
        settings=digest(plan.settings),
        entry=plan.entry,
        made=made,
    )


def _missing_folders(path: Path) -> list[Path]:
    """The folders that must be made for a file, the innermost first."""
    return [folder for folder in path.parents if not folder.exists()]
