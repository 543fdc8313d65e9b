"""What operators get from a served board: a rollout, metrics, and probes at `/health` and `/ready`.

A gateway builds the same from its configuration; here it follows the options of a board and the
store in its parts, which replicas may share.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import anyio
from anyio import to_thread

from pegboard.core.json import JsonObject
from pegboard.errors import ConfigError, StoreError
from pegboard.observe.rollouts import ArmObserver, RolloutTracker
from pegboard.store.fallback import decision_store
from pegboard.tokens import count_tokens

if TYPE_CHECKING:
    from starlette.routing import BaseRoute

    from pegboard.board import Pegboard
    from pegboard.observe.prometheus import PrometheusMetrics
    from pegboard.ports import Observer

logger = logging.getLogger(__name__)

RETRY_AFTER = 5.0
"""Seconds until the rollout is read again from a store that could not be reached."""


class BoardOperations:
    """The rollout and the metrics of one board."""

    def __init__(self, board: Pegboard) -> None:
        self._board = board
        self.metrics: Callable[[], bytes] | None = None
        """The content of `/metrics`, where the board has metrics."""
        observers: list[Observer] = []
        arms: list[ArmObserver] = []
        if board.options.metrics:
            prometheus = make_prometheus()
            self.metrics = prometheus.exposition
            observers.append(prometheus)
            arms.append(prometheus.arms)
        self.rollouts = RolloutTracker(decision_store(board.parts.store), arms)
        parts = board.parts
        board.parts = replace(parts, observers=(*parts.observers, *observers, self.rollouts))
        board.rollouts = self.rollouts

    async def load(self) -> None:
        """Read the active rollout, so that the first answer has the right mode."""
        try:
            await self.rollouts.load()
        except StoreError as exc:  # a board must start without its store: `follow` tries again
            logger.warning("The rollout cannot be read: %s", exc.message)
        await self._count_tokens()

    async def follow(self) -> None:
        """Follow the rollout in the store until canceled; retries when the store is down."""
        async with anyio.create_task_group() as tasks:

            def rolled_out() -> None:
                tasks.start_soon(self._count_tokens)
                self._board.announce()  # so that clients request the list again

            while True:
                try:
                    await self.rollouts.follow(rolled_out)
                except* StoreError as group:
                    logger.debug("The rollout cannot be followed: %s", group.exceptions[0])
                await anyio.sleep(RETRY_AFTER)

    async def _count_tokens(self) -> None:
        """Count the tokens of answers while metrics or an active rollout need them."""
        board = self._board
        is_wanted = self.metrics is not None or self.rollouts.current is not None
        if is_wanted == (board.parts.count is not None):
            return  # setting the parts would rebuild all layers, and empty their caches
        if is_wanted:
            await to_thread.run_sync(count_tokens, "")  # loads the tokenizer
        board.parts = replace(board.parts, count=count_tokens if is_wanted else None)

    def routes(self, *, names_nothing: bool = False) -> list[BaseRoute]:
        """`/health` and `/ready`; `names_nothing` leaves out details, for where people sign in."""

        def state() -> tuple[bool, JsonObject]:
            board = self._board
            if names_nothing:
                return board.is_served, {}
            known = {"tools": len(board.known_catalog), "in_flight": len(board.parts.in_flight)}
            return board.is_served, known

        async def check() -> None:
            await self._board.view()

        return health_routes(state, check)


def get_operations(board: Pegboard) -> BoardOperations:
    """The operations of a board, set up once however often it is served."""
    if board.operations is None:
        board.operations = BoardOperations(board)
    return board.operations


def health_routes(
    state: Callable[[], tuple[bool, JsonObject]], check: Callable[[], Awaitable[None]]
) -> list[BaseRoute]:
    """`/health`, which fails when requests cannot be answered, and `/ready`, which reports `state`.

    Args:
        state: Whether requests are accepted, and what else to report.
        check: Returns if a request could be answered, and otherwise raises the reason.
    """
    from starlette.responses import JSONResponse
    from starlette.routing import Route

    async def health(request: Any) -> JSONResponse:
        try:
            await check()
        except Exception:
            logger.exception("Requests cannot be answered")
            return JSONResponse({"status": "failing"}, status_code=503)
        return JSONResponse({"status": "ok"})

    async def ready(request: Any) -> JSONResponse:
        is_ready, further = state()
        return JSONResponse({"ready": is_ready, **further}, status_code=200 if is_ready else 503)

    return [Route("/health", health), Route("/ready", ready)]


def make_prometheus() -> PrometheusMetrics:
    """An observer that counts for Prometheus.

    Raises:
        ConfigError: The client library of Prometheus is not installed.
    """
    try:
        from pegboard.observe.prometheus import PrometheusMetrics
    except ImportError as exc:
        raise ConfigError(
            "Metrics need the Prometheus client: pip install 'pegboard[metrics]'."
        ) from exc
    return PrometheusMetrics()
