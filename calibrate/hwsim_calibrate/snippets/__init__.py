"""Snippets: numpy calls that are neither elementwise nor matmuls, each written as one line of Python as in programs.

Snippets are timed like all other cases. Their operation count, bytes and form are determined by recording them once, so that the
fit uses the same description of a call as `hwsim record`. To add a snippet, add a line to one of the tables. The suite `kernels`
defines the sizes at which a snippet is timed.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from hwsim_calibrate.snippets import algebra, creation, lookups, reductions
from hwsim_calibrate.snippets.builders import Build

SNIPPETS: Final[Mapping[str, Build]] = reductions.SNIPPETS | lookups.SNIPPETS | algebra.SNIPPETS | creation.SNIPPETS

__all__ = ["SNIPPETS", "Build"]
