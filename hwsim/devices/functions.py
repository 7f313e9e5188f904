"""Names of the functions of array libraries that an op may carry: numpy's, and a few of the libraries of networks.

They stand in `function_names.txt`. A name beyond these is accepted where the `kernels` of the op's own cpu have it.
Source: numpy 2 (its ufuncs, reductions, constructors and distributions).
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

FUNCTIONS: Final = frozenset(Path(__file__).with_name("function_names.txt").read_text(encoding="utf-8").split())
