"""One number of a value, as `y.item()` gives it: the program waits for it.

    item: {reads: loss}

or just `item: loss`.  As `print`, for a single number.  A compiled body cannot hold one: when it is
compiled there is no value yet.
"""

from __future__ import annotations

from typing import ClassVar

from hwsim.ops.op import FetchOp
from hwsim.records import dataclass
from hwsim.spec import field
from hwsim.units import Bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Item(FetchOp):
    """Wait for one number."""

    kind: ClassVar[str] = "item"

    bytes: Bytes | None = field("the number", default=8.0)
