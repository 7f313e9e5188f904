"""The longest path of `hwsim.engine.inorder`."""

from __future__ import annotations

import numpy as np

from hwsim.engine.kernels.words import compiled


@compiled
def longest_path(first, follow, missing, fixed, start, end):
    """Start and end of every op that can start; -1 for the others.  `missing` is used up, `start` begins as zeros."""
    count = fixed.size
    ready = np.empty(count, np.int32)
    top = 0
    for op in range(count - 1, -1, -1):
        if missing[op] == 0:
            ready[top] = op
            top += 1
    while top > 0:
        top -= 1
        op = ready[top]
        now = start[op] + fixed[op]
        end[op] = now
        for place in range(first[op], first[op + 1]):
            after = follow[place]
            if start[after] < now:
                start[after] = now
            missing[after] -= 1
            if missing[after] == 0:
                ready[top] = after
                top += 1
    for op in range(count):
        if end[op] < 0:
            start[op] = -1
