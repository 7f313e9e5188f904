"""The rate at which a stream of requests is served once it has begun and before it ends."""

from __future__ import annotations

from bisect import bisect_left

from hwsim.actors.request_level.requests import Served
from hwsim.units import PerSecond


def steady_rate(served: Served) -> PerSecond:
    """Requests per second, from the first tenth of the answers to the issue of the last request.

    With a depth, so many requests are under way all that time: neither the start, when all come at once, nor the end,
    when fewer and fewer are left, is counted.
    """
    answers = sorted(served.finish)
    first = len(answers) // 10
    last = bisect_left(answers, max(served.issued)) - 1
    if last - first < len(answers) // 4 or answers[last] <= answers[first]:
        return len(answers) / (answers[-1] - min(served.issued))
    return (last - first) / (answers[last] - answers[first])
