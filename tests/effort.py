"""What a call costs in terms of the machine that runs it: no bound in seconds holds on every computer, loaded or not."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final

TURNS: Final = 1_000_000  # of the loop that is the unit: about 0.03 s


def effort(call: Callable[[], object]) -> float:
    """CPU time of a call, in those of a loop of a million turns in the same process just before; the better of two."""
    return min(_ratio(call) for _ in range(2))


def _ratio(call: Callable[[], object]) -> float:
    begin = time.process_time()
    total = 0
    for turn in range(TURNS):
        total += turn & 7
    between = time.process_time()
    call()
    return (time.process_time() - between) / max(between - begin, 1e-9)
