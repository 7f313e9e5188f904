"""Adapters of a served model that are loaded when a request asks for one that is not there."""

from __future__ import annotations

from typing import NamedTuple


class AdapterUse(NamedTuple):
    """Use of the places for adapters, all copies together, warm-up included.

    Args:
        adapters: how many; places: for them on each copy. taken: times that a request took a place, again after it was put off.
        loads: times that its adapter had to be loaded for that; load_s: seconds of one.
        waited: requests that waited for a place; waited_s: together; longest_s: at most.
    """

    adapters: int
    places: int
    taken: int
    loads: int
    load_s: float
    waited: int
    waited_s: float
    longest_s: float
