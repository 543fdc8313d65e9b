"""The SDK's own server as a real process, in both eras, for clients of both eras at once."""

from __future__ import annotations

import pytest
from tests.upstream.support import gateway, said, script
from tests.upstream.test_eras import answer_form

pytestmark = pytest.mark.anyio


async def test_four_pairs_of_eras_over_stdio() -> None:
    specs = [script("everything", era, server=era) for era in ("legacy", "modern")]
    async with gateway(*specs) as through:
        for mode in ("legacy", "auto"):
            async with through.client(mode, elicitation_callback=answer_form) as client:
                for era in ("legacy", "modern"):
                    answer = said(await client.call_tool(f"{era}.ask_twice", {}))
                    assert answer == f"first={era} asks: one? second={era} asks: two?"
        eras = {status.server: status.era for status in through.pool.status()}
        assert eras == {"legacy": "legacy", "modern": "modern"}
