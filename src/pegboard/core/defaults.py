"""The defaults of all settings: the only place where each of these numbers is written.

A setting passes through several records on its way from `pegboard.toml` to the code that obeys it:

    config.Settings  -->  core.Options (a board)         -->  the policy of one dispatch layer
                     -->  UpstreamSpec (one server)      -->  its connection
                     -->  the limits of the HTTP server

Each record can be built on its own, so each has defaults, and all of them come from here. Durations
are seconds.
"""

from __future__ import annotations

from typing import Final

# The modes: how many tokens and tools they show.
EAGER_BUDGET: Final = 4_000
"""Tokens up to which `auto` lists a whole catalog: 2% of a context window of 200,000."""
INDEX_PAGE_TOKENS: Final = 1_500
ENABLED_TOOLS_CAP: Final = 40
ENABLED_PER_SEARCH: Final = 5
CATEGORY_TOKENS: Final = 4_000
TOKENIZER: Final = "o200k_base"

# A call.
CALL_TIMEOUT: Final = 60.0
CALL_RETRIES: Final = 2
FAN_OUT_CONCURRENCY: Final = 16
UPSTREAM_CONCURRENCY: Final = 32
UPSTREAM_QUEUE: Final = 256
BREAKER_FAILURES: Final = 5
BREAKER_COOLDOWN: Final = 60.0

# Its result.
SPILL_TOKENS: Final = 4_000
SPILL_BYTES: Final = 1_000_000
SPILL_TTL: Final = 3_600.0
TABLE_SAVING: Final = 0.15

# A program.
CODE_COMPUTE_TIME: Final = 5.0
CODE_TOTAL_TIME: Final = 300.0
CODE_SLEEP_TIME: Final = 5.0
CODE_MEMORY_BYTES: Final = 64 << 20
CODE_MAX_CALLS: Final = 200
CODE_MAX_PARALLEL: Final = 16
CODE_PROGRAM_BYTES: Final = 32_000
CODE_PRINT_BYTES: Final = 8_000
CODE_VALUE_BYTES: Final = 8_000_000
CODE_RECURSION: Final = 200
CODE_WORKERS: Final = 8
CODE_QUEUE: Final = 32
CODE_RECORD_TTL: Final = 3_600.0

# The schemas that are generated from Python functions.
SCHEMA_CACHE_SIZE: Final = 1_024
SCHEMA_CACHE_TTL: Final = 300.0

# One server, and all of them together.
START_CONCURRENCY: Final = 8
START_TIMEOUT: Final = 60.0
IDLE_STOP: Final = 600.0
SERVER_LOG_BYTES: Final = 1_000_000
MAX_MESSAGE_BYTES: Final = 64_000_000
MAX_PROCESSES: Final = 256
MAX_PROCESSES_PER_PRINCIPAL: Final = 32
NAME_MAX_LENGTH: Final = 64
"""Characters of a tool's name: model providers accept 64, MCP itself 128."""

# The HTTP server.
MAX_SESSIONS: Final = 1_000
MAX_SESSIONS_PER_PRINCIPAL: Final = 100
MAX_CONNECTIONS: Final = 1_000
HEADER_TIMEOUT: Final = 20.0
BODY_TIMEOUT: Final = 120.0
WRITE_TIMEOUT: Final = 120.0

# Rate limits and the audit log.
RATE_PERIOD: Final = 60.0
AUDIT_BYTES: Final = 50_000_000
