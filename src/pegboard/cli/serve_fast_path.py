"""`pegboard serve --config FILE`, as clients start it, without the full command line.

Importing Typer and Rich takes a tenth of a second, and a client waits for its servers each time it
starts. The few options that clients write are parsed here; anything else, including mistakes and
`--help`, goes to the full command line.
"""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pegboard.gateway.config_source import ConfigSource

_OPTIONS = ("--config", "--mode", "--http", "--profile")
PROFILE_VARIABLE = "PEGBOARD_PROFILE"  # as in `server.environment`, which is not imported yet


def run_fast_path(arguments: Sequence[str]) -> bool:
    """Serve if the arguments are simple enough; false if the full command line is needed."""
    options = _parse_options(arguments)
    if options is None:
        return False
    from pegboard.errors import ConfigError

    try:
        serve_config(
            Path(options["--config"]),
            mode=options.get("--mode"),
            http=options.get("--http"),
            profile=options.get("--profile"),
        )
    except ConfigError as exc:
        # As the full command line would print it, without importing Rich.
        from pegboard.core.sanitization import escape_hidden

        sys.stderr.write(f"error: {escape_hidden(exc.message)}\n")
        raise SystemExit(3) from None
    except KeyboardInterrupt:
        raise SystemExit(130) from None
    return True


def serve_config(
    config: Path,
    *,
    mode: str | None = None,
    http: str | None = None,
    store: str | None = None,
    workers: int = 1,
    profile: str | None = None,
) -> None:
    """Serve a configuration until stopped."""
    from pegboard import __version__
    from pegboard.server.early_answers import FirstExchange

    environ: Mapping[str, str] = os.environ
    if profile is not None:
        environ = {**environ, PROFILE_VARIABLE: profile}
    first = None
    if http is None and store is None:
        first = FirstExchange.begin(config, environ, mode=mode, version=__version__)
    # Imported modules stay in memory: collecting garbage during the imports only costs time.
    gc.disable()
    from pegboard.gateway.config_source import ConfigSource
    from pegboard.gateway.runner import serve_gateway

    gc.enable()
    # What is loaded now lives as long as the process: later collections skip it.
    gc.freeze()
    source = ConfigSource.from_path(config, environ=environ)
    source = override_source(source, mode=mode, store=store)
    serve_gateway(source, http=http, workers=workers, first=first)


def override_source(source: ConfigSource, *, mode: str | None, store: str | None) -> ConfigSource:
    """The source with the mode and the store of flags in place of its own."""
    from pegboard.config.settings import StoreSettings
    from pegboard.server.environment import with_mode

    stores = {} if store is None else {"store": StoreSettings(url=store)}
    overrides = {**source.overrides, **stores}
    return replace(source, environ=with_mode(source.environ, mode), overrides=overrides)


def _parse_options(arguments: Sequence[str]) -> dict[str, str] | None:
    if list(arguments[:1]) != ["serve"]:
        return None
    options: dict[str, str] = {}
    rest = list(arguments[1:])
    while rest:
        name, equals, value = rest.pop(0).partition("=")
        # The full command line reports unknown and repeated options, and missing values.
        if name not in _OPTIONS or name in options or not (equals or rest):
            return None
        options[name] = value if equals else rest.pop(0)
    return options if "--config" in options else None
