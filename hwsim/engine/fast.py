"""Choice of compiled code or Python for a simulation, by size or HWSIM_FAST. Results are equal, bit for bit.

HWSIM_FAST is `auto`, `never`, or `always` (for any size). The compiled library is optional: if it is missing or of another
version, Python simulates everything, with one warning if `always` was requested.
"""

from __future__ import annotations

import os
import warnings
from functools import cache
from typing import Final, Literal, cast

from hwsim.spec import SpecError

Choice = Literal["auto", "always", "never"]

CHOICES: Final = ("auto", "always", "never")
LARGE: Final = 500  # ops from which compiled code saves time (loading takes 1 ms)
CLASS: Final = 50  # ops to which one class of competing demands is equivalent


def uses_compiled_code(size: float, classes: int = 0, choice: Choice | None = None, *, large: int = LARGE) -> bool:
    """Return whether to use compiled code for a simulation.

    Args:
        size: number of ops, or of other units.
        classes: number of classes of competing demands.
        choice: choice that overrides the environment.
        large: size from which compiled code saves time.

    Raises:
        SpecError: HWSIM_FAST has an invalid value.
    """
    selected = choice_of(choice)
    if selected == "never" or (selected == "auto" and size + CLASS * classes < large):
        return False
    from hwsim.engine import core  # not needed for small runs

    if selected == "always" and not core.is_there():
        _warn(str(core.found()))
    return core.is_there()


def choice_of(choice: Choice | None) -> Choice:
    """Return `choice`, or else the choice of the environment.

    Raises:
        SpecError: HWSIM_FAST has an invalid value.
    """
    selected = choice or cast("Choice", os.environ.get("HWSIM_FAST") or "auto")
    if selected not in CHOICES:
        raise SpecError.of(None, f"HWSIM_FAST: expected one of {', '.join(CHOICES)}, got '{selected}'")
    return selected


@cache
def _warn(reason: str) -> None:
    warnings.warn(f"compiled code is not available, so simulations are slower: {reason}", RuntimeWarning, stacklevel=4)
