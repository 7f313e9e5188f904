"""Any collective, by its operation: also the reduction to one device, and the barrier.

    collective: {operation: reduce, among: gpu*, bytes: 1 GB, root: gpu0}

`bytes` are counted as the op of that operation counts them; of a reduction, what each member has.
"""

from __future__ import annotations

from typing import ClassVar

from hwsim.machine.libraries.operations import Operation
from hwsim.ops.exchange import RootedOp
from hwsim.records import dataclass
from hwsim.spec import field


@dataclass(frozen=True, slots=True, kw_only=True)
class Collective(RootedOp):
    """`operation` among devices."""

    kind: ClassVar[str] = "collective"
    does: ClassVar[Operation] = "all-reduce"

    named: Operation = field("what it does", key="operation")

    @property
    def operation(self) -> Operation:
        """What it does."""
        return self.named
