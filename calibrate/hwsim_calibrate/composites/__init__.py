"""Small programs that a calibration never saw, timed and predicted: what its error is worth in a program of many calls."""

from __future__ import annotations

from typing import Final

from hwsim_calibrate.composites.blind import BLIND
from hwsim_calibrate.composites.programs import DEVELOPMENT, TEXT, Program

PROGRAMS: Final[tuple[Program, ...]] = (*DEVELOPMENT, *BLIND, TEXT)

__all__ = ["BLIND", "DEVELOPMENT", "PROGRAMS", "TEXT", "Program"]
