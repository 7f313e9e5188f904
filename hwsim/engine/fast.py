"""When the compiled library plays: by size, or as HWSIM_FAST says. Its results equal Python's, bit for bit.

HWSIM_FAST is `auto`, `never`, or `always` (whatever the size). The library is never needed: where it is missing or does not fit,
Python plays everything, which is said once to who asked for `always`.
"""

from __future__ import annotations

import os
import warnings
from functools import cache
from typing import Final, Literal, cast

from hwsim.spec import SpecError

Choice = Literal["auto", "always", "never"]

CHOICES: Final = ("auto", "always", "never")
LARGE: Final = 500  # ops from which it pays to load the library (1 ms) and to hand the graph over
CLASS: Final = 50  # ops that a class of demands counts for: what one of thousands does is felt by hundreds


def plays(size: float, classes: int = 0, choice: Choice | None = None, *, large: int = LARGE) -> bool:
    """Whether the compiled library is to play a graph with that many ops and classes of competing demands.

    choice: instead of what the environment says.
    large: size from which it pays, of something else than ops.

    Raises:
        SpecError: HWSIM_FAST is none of its words.
    """
    wanted = choice_of(choice)
    if wanted == "never" or (wanted == "auto" and size + CLASS * classes < large):
        return False
    from hwsim.engine import core  # a small run needs none of it

    if wanted == "always" and not core.is_there():
        _say(str(core.found()))
    return core.is_there()


def choice_of(choice: Choice | None) -> Choice:
    """The choice that is given, else the choice of the environment.

    Raises:
        SpecError: HWSIM_FAST is none of its words.
    """
    wanted = choice or cast("Choice", os.environ.get("HWSIM_FAST") or "auto")
    if wanted not in CHOICES:
        raise SpecError.of(None, f"HWSIM_FAST is one of {', '.join(CHOICES)}, not '{wanted}'")
    return wanted


@cache
def _say(why: str) -> None:
    warnings.warn(f"Python plays all runs, more slowly: {why}", RuntimeWarning, stacklevel=4)
