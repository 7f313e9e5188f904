"""Rows of a table found by their number, and the gradient of the table.

    embedding: {device: gpu, lookups: 8192, width: 4096, table: 128256, dtype: bf16}
    embedding: {device: gpu, lookups: 81920, width: 64, table: 10e6, bags: 2048}

    forward     reads every row that is asked for and its number, writes it; with `bags`, their sums
    backward    a table of zeros is written, then each row's gradient is read and added to its place

A row that is shorter than a sector of memory (32 B) takes a whole one. Runs on the queue `compute` of its device.
"""

from __future__ import annotations

import math
from typing import ClassVar, Final, Literal

from hwsim.devices import Work
from hwsim.ops.op import ComputeOp, Dtype, Placed, Scope, compute
from hwsim.records import dataclass
from hwsim.spec import field
from hwsim.units import BYTES

SECTOR: Final = 32.0  # bytes of memory that cross together
NUMBER: Final = 8.0  # bytes of the number of a row


@dataclass(frozen=True, slots=True, kw_only=True)
class Embedding(ComputeOp):
    """`lookups` rows of `width` elements from a table of `table` rows."""

    kind: ClassVar[str] = "embedding"

    lookups: float = field("rows that are asked for", minimum=0, example="8192")
    width: int = field("elements of a row", default=1, minimum=1)
    table: float = field("rows of the table", minimum=1, example="128256")
    bags: float = field("sums of rows that come out, in place of the rows", default=0.0, minimum=0)
    passes: Literal["forward", "backward"] = field("the rows, or the gradient of the table", key="pass", default="forward")
    dtype: Dtype = field("type of the elements", default="fp32")

    def lower(self, scope: Scope) -> Placed:
        row = self.width * BYTES[self.dtype]
        crossed = math.ceil(row / SECTOR) * SECTOR
        made = (self.bags or self.lookups) * row
        table = self.table * row
        if self.passes == "forward":
            reads, writes, output = self.lookups * (crossed + NUMBER), made, made
            held = self.working_set if self.working_set is not None or table > self.lookups * crossed else table
        else:
            reads, writes, output = made + self.lookups * (crossed + NUMBER), table + self.lookups * crossed, table
            held = self.working_set
        flop = self.lookups * self.width if self.bags or self.passes == "backward" else 0.0
        work = Work(flop=flop, reads=reads, writes=writes, dtype=self.dtype, working_set=held)
        return compute(scope, self, work, output=output)
