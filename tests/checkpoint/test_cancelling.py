"""A cancelled task ends, whether its write was committed or not."""

import asyncio

from checkpoint.making import config
from langgraph.checkpoint.base import empty_checkpoint

from langmem_adapter.checkpoint.sqlite import SqliteCheckpointer


async def test_a_cancellation_is_never_swallowed(saver: SqliteCheckpointer) -> None:
    async def work(name: str) -> None:
        for _ in range(500):
            await saver.aput(config(name), empty_checkpoint(), {}, {})

    for n in range(20):
        task = asyncio.create_task(work(f"t{n}"))
        await asyncio.sleep(0.004 + n * 0.0003)
        task.cancel()
        await asyncio.wait([task])
        assert task.cancelled()


async def test_a_timeout_is_a_timeout(saver: SqliteCheckpointer) -> None:
    """Also when it strikes during the commit, and never outside of its block."""
    for n in range(20):
        timed_out = False
        try:
            async with asyncio.timeout(0.001 + n * 0.0002):
                for _ in range(500):
                    await saver.aput(config(f"t{n}"), empty_checkpoint(), {}, {})
        except TimeoutError:
            timed_out = True
        await asyncio.sleep(0)
        assert timed_out
