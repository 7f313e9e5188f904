"""Which devices do what: teams that share a micro-batch, and groups of them that exchange."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache

from hwsim.models import Laid
from hwsim.models.layer import Axis
from hwsim.records import dataclass

Names = tuple[str, ...]


@lru_cache(maxsize=64)
def strides(laid: Laid) -> Mapping[str, int]:
    """How far apart neighbours of each axis are in the order of the devices.

    Copies that split the experts (ep) are a part of the data-parallel ones, with a place of their own in `order`.
    """
    plan = laid.plan
    order = (
        plan.order
        if "ep" in plan.order
        else tuple(both for axis in plan.order for both in (("ep", "dp") if axis == "dp" else (axis,)))
    )
    sizes = {"tp": plan.tp, "cp": plan.cp, "pp": plan.pp, "ep": plan.ep, "dp": laid.dp // plan.ep}
    found = dict.fromkeys(sizes, 0)
    stride = 1
    for axis in order:
        found[axis] = stride
        stride *= sizes[axis]
    return found


@dataclass(frozen=True, slots=True)
class Layout:
    """A plan on devices, in the order of the machine.

    A team is the tp x cp devices that work on the same layers of the same micro-batch, at the same time.
    """

    laid: Laid
    devices: Sequence[str]
    per_node: int

    def device(self, tp: int, cp: int, stage: int, copy: int) -> str:
        """The device at these coordinates."""
        return self.devices[self._place(tp, cp, stage, copy)]

    def _place(self, tp: int, cp: int, stage: int, copy: int) -> int:
        at = strides(self.laid)
        outer, inner = divmod(copy, self.laid.plan.ep)
        return tp * at["tp"] + cp * at["cp"] + stage * at["pp"] + inner * at["ep"] + outer * at["dp"]

    def team(self, stage: int, copy: int) -> Names:
        """The devices of one copy of a stage, tensor-parallel neighbours first."""
        plan = self.laid.plan
        return tuple(self.device(tp, cp, stage, copy) for cp in range(plan.cp) for tp in range(plan.tp))

    def groups(self, axis: Axis, stage: int, copy: int) -> tuple[Names, ...]:
        """Groups of devices that exchange along an axis, of one team (tp, cp) or of all that exchange with it (ep, dp)."""
        plan = self.laid.plan
        tps, cps = range(plan.tp), range(plan.cp)
        match axis:
            case "tp":
                return tuple(tuple(self.device(tp, cp, stage, copy) for tp in tps) for cp in cps)
            case "cp":
                return tuple(tuple(self.device(tp, cp, stage, copy) for cp in cps) for tp in tps)
            case _:
                copies = self.copies(axis, copy)
                return tuple(tuple(self.device(tp, cp, stage, each) for each in copies) for cp in cps for tp in tps)

    def copies(self, axis: Axis, copy: int) -> range:
        """Copies of the model that exchange along an axis with one of them: all, or (ep) those that split the experts."""
        size = self.laid.plan.ep if axis == "ep" else self.laid.dp
        first = copy // size * size
        return range(first, first + size)

    def across(self, stage: int, size: int) -> tuple[Names, ...]:
        """All groups of so many copies of a stage."""
        plan = self.laid.plan
        starts = [self._place(0, 0, stage, copy) for copy in range(self.laid.dp)]
        found = []
        for first in range(0, self.laid.dp, size):
            for cp in range(plan.cp):
                for tp in range(plan.tp):
                    own = self._place(tp, cp, 0, 0)
                    found.append(tuple([self.devices[start + own] for start in starts[first : first + size]]))
        return tuple(found)

    def nodes(self, stage: int, copy: int) -> set[int]:
        """Numbers of the nodes that a team is on."""
        plan = self.laid.plan
        return {
            self._place(tp, cp, stage, copy) // self.per_node for cp in (0, plan.cp - 1) for tp in (0, plan.tp - 1)
        }  # what lies between the corners lies between their nodes, or on more of them
