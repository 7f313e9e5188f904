"""A value as an array of the program's own, as `y.asnumpy()` gives it: the program waits for it.

    asnumpy: {reads: y, writes: array}

or just `asnumpy: y`.  As `print`; what it `writes` lies in the host's memory.  A compiled body
cannot hold one: when it is compiled there is no value yet.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from hwsim.ops.op import FetchOp


@dataclass(frozen=True, slots=True, kw_only=True)
class Asnumpy(FetchOp):
    """Wait for a value and keep it as an array."""

    kind: ClassVar[str] = "asnumpy"
