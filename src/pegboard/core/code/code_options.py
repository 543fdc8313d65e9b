"""The settings of code mode: what a program may use, and what is stored about it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

from pegboard.core import defaults

Confinement: TypeAlias = Literal["auto", "required", "off"]


@dataclass(frozen=True, kw_only=True, slots=True)
class CodeOptions:
    """Limits of one program, and of all together. Durations are seconds."""

    in_proxy: bool = False
    """Whether the `proxy` mode lists the tools that run programs, too."""
    compute_time: float = defaults.CODE_COMPUTE_TIME
    """What a program may compute, without the time that its calls take."""
    total_time: float = defaults.CODE_TOTAL_TIME
    """What it may take in all, with its calls."""
    sleep_time: float = defaults.CODE_SLEEP_TIME
    """What it may sleep in all."""
    memory_bytes: int = defaults.CODE_MEMORY_BYTES
    max_calls: int = defaults.CODE_MAX_CALLS
    """Calls of tools in one run."""
    max_parallel: int = defaults.CODE_MAX_PARALLEL
    """Calls of one run at the same time."""
    program_bytes: int = defaults.CODE_PROGRAM_BYTES
    print_bytes: int = defaults.CODE_PRINT_BYTES
    """Bytes of printed text that come back; what is printed beyond is dropped."""
    value_bytes: int = defaults.CODE_VALUE_BYTES
    """Bytes of JSON that the value of a program may have."""
    recursion: int = defaults.CODE_RECURSION
    workers: int = defaults.CODE_WORKERS
    """Programs that run at the same time, each in a process of its own."""
    queue: int = defaults.CODE_QUEUE
    """Programs that may wait for a free worker; further ones fail with `Busy`."""
    record_ttl: float = defaults.CODE_RECORD_TTL
    """For how long a suspended run, or the record of a run that stopped, can be continued."""
    store_programs: bool = False
    """Whether events and records contain the programs themselves, not only their digests."""
    confine: Confinement = "auto"
    """Whether workers run inside bubblewrap: where it is installed, always, or never."""
