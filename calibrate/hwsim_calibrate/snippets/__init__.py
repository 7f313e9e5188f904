"""Calls of numpy that are neither elementwise nor a product, each a line of Python as programs write it.

A snippet is timed like any other call. What it does in the words of the model (steps, bytes, form) is found by recording it once,
so that what is fitted is what a recorder finds in a program. A new snippet is a line of one of the tables; the suite `kernels`
says at which sizes it is timed.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from hwsim_calibrate.snippets import algebra, along, made, places
from hwsim_calibrate.snippets.forms import Build

SNIPPETS: Final[Mapping[str, Build]] = {**along.SNIPPETS, **places.SNIPPETS, **algebra.SNIPPETS, **made.SNIPPETS}

__all__ = ["SNIPPETS", "Build"]
