"""A value printed: the program waits for it, as `print(y)` does.

    print: {reads: y}

or just `print: y`.  A value in a GPU's memory is copied to the program's host first, on the queue
`d2h`; its size is the value's unless `bytes` says.  Then the program goes on after `return` of its
runtime.  In a compiled body nothing is printed: the program is not there when it runs.
"""

from __future__ import annotations

from typing import ClassVar

from hwsim.ops.op import FetchOp
from hwsim.records import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Print(FetchOp):
    """Wait for a value and show it."""

    kind: ClassVar[str] = "print"
