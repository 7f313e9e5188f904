"""Uncertainty of a line of a derivation, by the regime of its formula and the source of its decisive number."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final

from hwsim.origins import Cited, UncertaintySource, case_of

_NUMBERS: Final = re.compile(r"\d+(?=\.|$|/)")


@lru_cache(maxsize=4096)
def device_without_number(name: str) -> str:
    """Return the name of a device without its numbers, because identical devices share their error.

    >>> device_without_number("node12.gpu3"), device_without_number("it")
    ('node.gpu', 'it')
    """
    return _NUMBERS.sub("", name)


def doubts(regime: str, name: str, source: Cited, seconds: float) -> tuple[UncertaintySource, ...]:
    """Return the uncertainty of a line of `seconds` on a device, from the source of its decisive number; none if it is ideal."""
    case = case_of(source)
    return (
        ()
        if case is None or seconds <= 0
        else (UncertaintySource(regime, case, f"{device_without_number(name)} {regime}", seconds),)
    )
