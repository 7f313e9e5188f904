"""Names of array-library functions that an op may use: numpy's, and a few of neural network libraries.

`function_names.txt` lists them. Other names are accepted if the `kernels` of the op's CPU contain them.
Source: numpy 2 (its ufuncs, reductions, constructors and distributions).
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

FUNCTIONS: Final = frozenset(Path(__file__).with_name("function_names.txt").read_text(encoding="utf-8").split())
