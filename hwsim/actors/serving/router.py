"""Which copy of a model a request goes to."""

from __future__ import annotations

from collections.abc import Sequence as Many
from typing import Protocol

from hwsim.actors.serving.run import Sequence


class Routed(Protocol):
    """A copy as a router sees it; requests: that wait there or are worked on."""

    @property
    def requests(self) -> int: ...


def choose(copies: Many[Routed], sequence: Sequence) -> int:
    """The number of the copy with the fewest requests, of equal ones the first."""
    del sequence
    if len(copies) == 1:
        return 0
    counts = [copy.requests for copy in copies]
    return counts.index(min(counts))
