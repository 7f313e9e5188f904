"""The yardstick: how many timeouts a second stock SimPy handles, in the same process, just now."""

from __future__ import annotations

import time
from collections.abc import Generator

import simpy


def timeouts_per_second(count: int = 200_000) -> float:
    """One process that yields timeouts; CPU time."""
    env = simpy.Environment()

    def process() -> Generator[simpy.Event, None, None]:
        timeout = env.timeout
        for _ in range(count):
            yield timeout(1.0)

    env.process(process())
    begin = time.process_time()
    env.run()
    return count / (time.process_time() - begin)
