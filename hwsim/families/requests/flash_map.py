"""The pages of one flash plane: a page map, an open block, and greedy garbage collection.

A flash page can be programmed once and is erased only with its entire block. So an overwritten page is written elsewhere, and its
old copy becomes invalid. When fewer than `reserve` blocks are empty, the block with the fewest valid pages is collected: its
valid pages move to a separate open block, and it is erased.

    write amplification = (pages written + pages moved) / pages written

The map has no times; `hwsim.families.requests.ssd` computes the times of moves and erases.

**Source.** Rosenblum and Ousterhout, "The design and implementation of a log-structured file system", ACM TOCS
10(1), 1992 (greedy cleaning); Desnoyers, "Analytic models of SSD write performance", ACM TOS 10(2), 2014.
**Error.** calibrate/published/twins_storage.py against a reference simulator.
**Range.** One stream, no separation of hot from cold pages, no wear levelling.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from copy import copy
from typing import Final

from hwsim.units import Ratio

_NOT_A_VICTIM: Final = 1 << 40  # added to the valid pages of open and empty blocks, so that they are never collected


class PlaneMap:
    """The page map of a plane: logical pages 0 to `logical` - 1 on `blocks` blocks of `pages` pages.

    >>> plane = PlaneMap(logical=4, blocks=6, pages=2, reserve=2)
    >>> [plane.write(page) for page in (0, 1, 2, 3)]  # (place in the block, pages moved, blocks erased)
    [(0, 0, 0), (1, 0, 0), (0, 0, 0), (1, 0, 0)]
    >>> [plane.write(page) for page in (0, 2, 0, 2)], plane.moved
    ([(0, 0, 0), (1, 0, 0), (0, 1, 1), (1, 0, 0)], 1)

    Raises:
        ValueError: The logical pages and the reserved blocks do not fit.
    """

    __slots__ = (
        *("erased", "free", "moved", "pages", "reserve", "where"),
        *("_live", "_next", "_open", "_owner", "_spare", "_spare_next"),
    )

    def __init__(self, *, logical: int, blocks: int, pages: int, reserve: int) -> None:
        self.pages, self.reserve = pages, max(2, reserve)  # with two, a block for moved pages is always available
        if logical > (blocks - self.reserve - 2) * pages:
            kept = f"with {self.reserve + 2} reserved blocks"
            raise ValueError(f"{logical} pages do not fit in {blocks} blocks of {pages} pages {kept}")
        self.where = [-1] * logical  # logical page -> physical page
        self._owner = [-1] * (blocks * pages)  # physical page -> logical page, -1 if invalid or empty
        self._live = [_NOT_A_VICTIM] * blocks
        self.free = list(range(blocks - 1, -1, -1))
        self._open, self._next = self.free.pop(), 0
        self._spare, self._spare_next = self.free.pop(), 0
        self.moved = self.erased = 0

    def offset(self, page: int) -> int:
        """Return the index in its block of a written page."""
        return self.where[page] % self.pages

    def write(self, page: int) -> tuple[int, int, int]:
        """Write a page; return (index in its block, pages moved before, blocks erased before)."""
        moved = erased = 0
        pages, live = self.pages, self._live
        if self._next == pages:
            live[self._open] -= _NOT_A_VICTIM
            self._open, self._next = self.free.pop(), 0
            while len(self.free) < self.reserve:
                moved += self._collect()
                erased += 1
        old = self.where[page]
        if old >= 0:
            live[old // pages] -= 1
            self._owner[old] = -1
        offset = self._next
        place = self._open * pages + offset
        self._next = offset + 1
        self.where[page] = place
        self._owner[place] = page
        live[self._open] += 1
        return offset, moved, erased

    def copy(self) -> PlaneMap:
        """Return a copy in the same state with counters at 0."""
        plane = copy(self)
        for name in ("where", "free", "_owner", "_live"):
            setattr(plane, name, getattr(self, name).copy())
        plane.moved = plane.erased = 0
        return plane

    def _collect(self) -> int:
        """Collect the block with the fewest valid pages; return the number of moved pages."""
        live, owner, where, pages = self._live, self._owner, self.where, self.pages
        victim = live.index(min(live))
        live[victim] = _NOT_A_VICTIM
        first, moved = victim * pages, 0
        for place in range(first, first + pages):
            page = owner[place]
            if page < 0:
                continue
            if self._spare_next == pages:
                live[self._spare] -= _NOT_A_VICTIM
                self._spare, self._spare_next = self.free.pop(), 0
            to = self._spare * pages + self._spare_next
            self._spare_next += 1
            owner[place], owner[to], where[page] = -1, page, to
            live[self._spare] += 1
            moved += 1
        self.free.insert(0, victim)  # blocks are reused in the order of erasure
        self.moved += moved
        self.erased += 1
        return moved


def worn_planes(blocks: int, pages: int, over_provisioning: Ratio, reserve: Ratio) -> Callable[[], PlaneMap]:
    """Return a function that makes planes in steady state: written sequentially, then twice as much at random.

    All planes are states of one plane at different times, so that they do not collect garbage simultaneously.
    """
    draw, logical = random.Random(1).random, int(blocks * pages * (1.0 - over_provisioning))
    plane = PlaneMap(logical=logical, blocks=blocks, pages=pages, reserve=math.ceil(reserve * blocks))

    def make() -> PlaneMap:
        if plane.where[0] < 0:  # nothing is written yet
            for page in range(logical):
                plane.write(page)
            for _ in range(2 * logical):
                plane.write(int(draw() * logical))
        for _ in range(1 + int(draw() * 2 * pages)):
            plane.write(int(draw() * logical))
        return plane.copy()

    return make
