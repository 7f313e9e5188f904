"""An embedding: rows of a table looked up by index, and the gradient of the table.

    embedding: {device: gpu, lookups: 8192, width: 4096, table: 128256, dtype: bf16}
    embedding: {device: gpu, lookups: 81920, width: 64, table: 10e6, bags: 2048}

    forward     read each index and its row, write the rows, or with `bags` their sums
    backward    write a table of zeros, then read each row's gradient and add it to its row

A row that is shorter than a memory sector (32 B) moves a whole sector. The op runs on the queue `compute` of its device.
"""

from __future__ import annotations

import math
from typing import ClassVar, Final, Literal

from hwsim.devices import Work
from hwsim.ops.op import ComputeOp, Dtype, LoweredOp, Scope, compute
from hwsim.records import dataclass
from hwsim.spec import field
from hwsim.units import BYTES

SECTOR: Final = 32.0  # bytes of one memory transaction
INDEX: Final = 8.0  # bytes of a row index


@dataclass(frozen=True, slots=True, kw_only=True)
class EmbeddingOp(ComputeOp):
    """A lookup of `lookups` rows of `width` elements in a table of `table` rows."""

    kind: ClassVar[str] = "embedding"

    lookups: float = field("number of rows looked up", minimum=0, example="8192")
    width: int = field("number of elements of a row", default=1, minimum=1)
    table: float = field("number of rows of the table", minimum=1, example="128256")
    bags: float = field("number of sums of rows returned instead of the rows; 0: no sums", default=0.0, minimum=0)
    passes: Literal["forward", "backward"] = field("rows (forward), or gradient of the table", key="pass", default="forward")
    dtype: Dtype = field("data type of the elements", default="fp32")

    def lower(self, scope: Scope) -> LoweredOp:
        row = self.width * BYTES[self.dtype]
        crossed = math.ceil(row / SECTOR) * SECTOR
        made = (self.bags or self.lookups) * row
        table = self.table * row
        if self.passes == "forward":
            reads, writes, output = self.lookups * (crossed + INDEX), made, made
            working_set = self.working_set if self.working_set is not None or table > self.lookups * crossed else table
        else:
            reads, writes, output = made + self.lookups * (crossed + INDEX), table + self.lookups * crossed, table
            working_set = self.working_set
        flop = self.lookups * self.width if self.bags or self.passes == "backward" else 0.0
        work = Work(flop=flop, reads=reads, writes=writes, dtype=self.dtype, working_set=working_set)
        return compute(scope, self, work, output=output)
