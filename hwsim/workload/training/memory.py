"""Buffers of a training: what its GPUs hold all the time, and from a forward pass to its backward pass.

**Range**: without what libraries allocate to work in, and the context of the driver (0.3 to 1 GB).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from hwsim.graph.builder import GraphBuilder, OpRef
from hwsim.graph.opgraph import Buffer, Mark
from hwsim.workload.training.plan import Held


def hold(
    builder: GraphBuilder,
    held: Held,
    devices: Iterable[str],
    first: OpRef,
    lives: Sequence[Sequence[OpRef]] = (),
    steps: int = 1,
) -> None:
    """Add the buffers of devices of one stage.

    Args:
        first: the op from which on the memory is taken.
        lives: for each pass through a virtual stage, the ops that need its activations; none: they are among `held.always`.
        steps: that run the block.
    """
    listed = tuple(devices)
    mark = Mark(first.block, first.op)

    def always(value: str, kind: str, device: str, size: float) -> None:
        if size > 0:
            builder.buffer(Buffer(value, kind, device, math.ceil(size), "scope", mark, (), None, first.block))

    for device in listed:
        for value, size in held.always.items():
            always(value, "training", device, size)
    for device in listed:
        for ops in lives:
            users = tuple(Mark(op.block, op.op) for op in (ops[0], ops[-1]))
            size = math.ceil(held.kept)
            builder.buffer(
                Buffer("activations", "forward", device, size, "last-use", users[0], users, None, first.block, 0, steps)
            )
    for device in listed:
        always("recomputed layer", "backward", device, held.recomputed)
