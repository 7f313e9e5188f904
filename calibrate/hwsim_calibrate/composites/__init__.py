"""Small programs that a calibration never saw, timed and predicted: what its error is worth in a program of many calls.

- programs, ordinary: looked at while the model and the suites were built.
- blind: written before the model was first scored on them; looked at since, when the suites grew.
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
FRESH: Final = tuple(replace(each, name=f"{each.name} again") if each.name in _NAMES else each for each in WRITTEN)
PROGRAMS: Final[tuple[Program, ...]] = (*SEEN, *FRESH, TEXT)

__all__ = ["BLIND", "DEVELOPMENT", "FRESH", "ORDINARY", "PROGRAMS", "SEEN", "TEXT", "Program"]
