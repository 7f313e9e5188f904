"""Compiled code for large graphs: there with the extra [fast] (numba), chosen by size, and never needed.

HWSIM_FAST says otherwise: `never`, `always` (whatever the size) or `auto`. Its results equal
Python's, bit for bit; it is compiled once and kept (NUMBA_CACHE_DIR, else with the sources).
"""

from __future__ import annotations

import os
import sys
from importlib.util import find_spec
from typing import Any, Final, Literal, cast

from hwsim.engine import core
from hwsim.spec import Mistake, SpecError

Choice = Literal["auto", "always", "never"]
Kernels = Any  # the module hwsim.engine.kernels: what numba makes has no types

CHOICES: Final = ("auto", "always", "never")
MODULE: Final = "hwsim.engine.kernels"
LARGE: Final = 200_000  # ops from which loading compiled code (0.4 s) pays
LOADED: Final = 2_000  # ops from which it pays once it is loaded
CLASS: Final = 50  # ops that a class of demands counts for: what one of thousands does is felt by hundreds


def code_for(ops: int, classes: int = 0, choice: Choice | None = None) -> Kernels | None:
    """The compiled code, if it is to play a graph with that many ops and classes of competing demands; None if Python is.

    choice: instead of what the environment says.

    Raises:
        SpecError: HWSIM_FAST is none of its words.
        ImportError: `always`, and there is no numba.
    """
    wanted = choice_of(choice)
    large = ops + CLASS * classes >= (LOADED if MODULE in sys.modules else LARGE)
    if wanted == "never" or (wanted == "auto" and not (large and is_there())):
        return None
    if not is_there():
        raise ImportError("compiled code needs numba: pip install 'hwsim[fast]'")
    from hwsim.engine import kernels

    return kernels


def plays(ops: int, classes: int = 0, choice: Choice | None = None) -> bool:
    """Whether the compiled library is to play a graph with that many ops and classes of competing demands.

    choice: instead of what the environment says.

    Raises:
        SpecError: HWSIM_FAST is none of its words.
    """
    wanted = choice_of(choice)
    return wanted != "never" and (wanted == "always" or ops + CLASS * classes >= LOADED) and core.is_there()


def choice_of(choice: Choice | None) -> Choice:
    """The choice that is given, else the choice of the environment.

    Raises:
        SpecError: HWSIM_FAST is none of its words.
    """
    wanted = choice or cast("Choice", os.environ.get("HWSIM_FAST") or "auto")
    if wanted not in CHOICES:
        raise SpecError([Mistake(None, f"HWSIM_FAST is one of {', '.join(CHOICES)}, not '{wanted}'")])
    return wanted


def is_there() -> bool:
    """Whether numba is installed."""
    return find_spec("numba") is not None
