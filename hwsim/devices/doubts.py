"""Which errors a line of a derivation has: by the regime of its formula, and by the source of its decisive number."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final

from hwsim.demand import Case, Doubt

_NUMBERS: Final = re.compile(r"\d+(?=\.|$|/)")
# Words of a source: how well the number is known. The first that fits; a plain default is an ideal, which no error covers.
_WORDS: Final[tuple[tuple[str, Case], ...]] = (
    ("default: outside", "outside"),
    (", other generations", "generation"),
    (" of any kind", "generation"),
    ("default: ", "device"),
    ("guess", "device"),
    ("fitted", "known"),
    ("measured", "known"),
    ("datasheet", "device"),
    ("recalled", "device"),
    ("stated", "known"),
)


@lru_cache(maxsize=4096)
def standing(source: str) -> Case | None:
    """Case of a number with this source; None for an ideal, or for one without a source.

    >>> standing("fitted, half of the sizes"), standing("guess, as its twin"), standing("default: outside, gpu, no data, 60 %")
    ('known', 'device', 'outside')
    >>> standing("default"), standing("default: nvidia, other generations, 12 parts, 20 %")
    (None, 'generation')
    """
    return next((case for word, case in _WORDS if word in source), None)


@lru_cache(maxsize=4096)
def alike(name: str) -> str:
    """The name of a device without its number: devices of one kind share their errors.

    >>> alike("node12.gpu3"), alike("it")
    ('node.gpu', 'it')
    """
    return _NUMBERS.sub("", name)


def doubts(regime: str, name: str, source: str, seconds: float) -> tuple[Doubt, ...]:
    """The error of a line of `seconds` on a device, whose decisive number has this source; none for an ideal."""
    case = standing(source)
    return () if case is None or seconds <= 0 else (Doubt(regime, case, f"{alike(name)} {regime}", seconds),)
