"""Small programs that validate a calibration: they are timed and predicted, but never fitted.

- programs, ordinary: used to develop the model and the suites.
- blind: written before the model was first scored on them; later used to extend the suites.
- fresh: written by an author who had not read the suites, and scored once.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from hwsim_calibrate.composites.blind import BLIND
from hwsim_calibrate.composites.fresh import FRESH as WRITTEN
from hwsim_calibrate.composites.ordinary import ORDINARY
from hwsim_calibrate.composites.programs import DEVELOPMENT, TEXT, Program

SEEN: Final = tuple(replace(program, blind=False) for program in (*DEVELOPMENT, *ORDINARY, *BLIND))
_NAMES: Final = {program.name for program in SEEN}
FRESH: Final = tuple(replace(program, name=f"{program.name} again") if program.name in _NAMES else program for program in WRITTEN)
PROGRAMS: Final[tuple[Program, ...]] = (*SEEN, *FRESH, TEXT)

__all__ = ["BLIND", "DEVELOPMENT", "FRESH", "ORDINARY", "PROGRAMS", "SEEN", "TEXT", "Program"]
