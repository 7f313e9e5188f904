"""Costs of the ops of a training: kernels of one GPU, or of all GPUs of a stage group in one op, and work of the hosts.

Kernels without a synchronization between them form one op. It takes their total time, and uses the memory bandwidth of its
devices evenly over that time. It occupies the compute capacity of a device while kernels run, whatever bounds them, and this part
of its time scales with the speed of the device. If the devices wait for a collective within the op, the op also uses the links,
so that other traffic slows it down.

    seconds = kernels by the GPU's model (`hwsim.models.KernelTimes`) + exposed part x collectives by `hwsim.communication`

The time of a convolution is that of its matmul divided by the efficiency of libraries (`hwsim.devices.gpu_convolution`). Its
kernel uses the compute capacity for this time, and the memory for its bytes.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import field, replace
from typing import Final

from hwsim.demand import Cost, Demand, Term, Unit
from hwsim.devices import Cpu, Gpu, Work
from hwsim.devices.gpu_convolution import CONVOLUTION, TimedKernel, scale_kernel
from hwsim.formats import precise
from hwsim.machine import Machine
from hwsim.models.capacity_amounts import Names
from hwsim.models.kernel_errors import kernel_errors
from hwsim.models.kernel_times import KernelTimes
from hwsim.models.layer import Kernel
from hwsim.origins import UncertaintySource
from hwsim.records import dataclass

KERNELS: Final = "a kernel's own model, as it runs in trainings"
HOST: Final = "kernel launches, beyond the time of the kernels"
FLOWS: Final = "collectives on the machine's links"
Drawn = tuple[float, float, float, float]
NOTHING: Final[Drawn] = (0.0, 0.0, 0.0, 0.0)
COLLECTIVES: Final = frozenset({"tp", "cp", "ep", "pp", "dp"})
_NAME: Final = "gpu"  # name of the GPU in costs before they are copied to the GPUs of its kind


@dataclass(frozen=True, slots=True)
class OpAmounts:
    """The time and resource amounts of an op.

    Args:
        seconds: time by kind of work, in sequence (s).
        collecting: part of the time spent in collectives (s).
        gpus: (compute time (s), memory time (s), FLOP, bytes) per GPU, by kind of GPU in the stage group.
        amounts: amounts of other capacities, such as links.
        moved: FLOP or bytes on other capacities, with their unit.
    """

    seconds: Mapping[str, float] = field(default_factory=dict)
    collecting: float = 0.0
    gpus: tuple[Drawn, ...] = ()
    amounts: Mapping[str, float] = field(default_factory=dict)
    moved: Mapping[str, tuple[float, Unit]] = field(default_factory=dict)

    @property
    def total(self) -> float:
        """Total time (s)."""
        return math.fsum(self.seconds.values())

    @classmethod
    def of(cls, parts: Iterable[tuple[OpAmounts, float]]) -> OpAmounts:
        """Return the sum of (amounts, number of repetitions), executed in sequence."""
        seconds, amounts, moved = dict[str, float](), dict[str, float](), dict[str, tuple[float, Unit]]()
        collecting, gpus = 0.0, tuple[Drawn, ...]()
        for after, times in parts:
            _add(seconds, after.seconds, times)
            _add(amounts, after.amounts, times)
            for name, (amount, unit) in after.moved.items():
                moved[name] = (moved.get(name, (0.0, unit))[0] + times * amount, unit)
            if after.gpus:
                pairs = zip(gpus or (NOTHING,) * len(after.gpus), after.gpus, strict=True)
                gpus = tuple(
                    (a[0] + times * b[0], a[1] + times * b[1], a[2] + times * b[2], a[3] + times * b[3]) for a, b in pairs
                )
            collecting += times * after.collecting
        return OpAmounts(seconds, collecting, gpus, amounts, moved)

    def and_then(self, after: OpAmounts, times: float = 1.0) -> OpAmounts:
        """Return the sum with further work, which is executed `times` times."""
        return OpAmounts.of(((self, 1.0), (after, times)))

    def cost(
        self,
        group: Names,
        link_rate: Callable[[str], float],
        bandwidth: float,
        places: Sequence[int] = (),
        why: tuple[Term, ...] = (),
    ) -> Cost:
        """Return the cost of an op of a stage group.

        Args:
            group: devices of the stage group.
            link_rate: bandwidth of a link (B/s), 0 for another capacity; the slowest link sets the weight of the op in sharing.
            bandwidth: memory bandwidth (B/s), which sets the weight of an op without links.
            places: index into `gpus` of each device of the group; default: 0 for all.
            why: derivation of the time.
        """
        total = self.total
        drawn = [self.gpus[place] if self.gpus else NOTHING for place in places or (0,) * len(group)]
        amounts = dict(self.amounts)
        for index, part in enumerate(("compute", "memory")):
            _add(amounts, {f"{name}.{part}": gpu[index] for name, gpu in zip(group, drawn, strict=True)})
        links = ((amount, link_rate(name)) for name, amount in self.amounts.items())
        slowest = max(((amount / rate, amount) for amount, rate in links if rate), default=(0.0, 0.0))[1]
        drawn_from = tuple(sorted([row for row in amounts.items() if row[1] > 0]))
        kernels = zip(group, drawn, strict=True)
        clocks = tuple([(f"{name}.compute", min(1.0, gpu[0] / total)) for name, gpu in kernels if gpu[0] > 0])
        demand = Demand(amounts=drawn_from, floor=total, share=slowest or total * bandwidth or 1.0, clocks=clocks)
        moved = dict(self.moved)
        for name, (_, _, flop, size) in zip(group, drawn, strict=True):
            moved[f"{name}.compute"] = flop, "FLOP"
            moved[f"{name}.memory"] = moved.get(f"{name}.memory", (0.0, "B"))[0] + size, "B"
        return Cost(demand, tuple((name, *amount) for name, amount in sorted(moved.items()) if amount[0] > 0), why)


def _add(total: dict[str, float], more: Mapping[str, float], times: float = 1.0) -> None:
    for name, value in more.items():
        total[name] = total.get(name, 0.0) + times * value


@dataclass(slots=True)
class KernelCosts:
    """The costs of kernels on one kind of GPU with one framework."""

    times: KernelTimes
    _spent: dict[Kernel, tuple[float, float, float, float, float]] = field(default_factory=dict)
    _alone: dict[tuple[Work, float], tuple[Cost, dict[str, Cost]]] = field(default_factory=dict)  # and by device
    _seen: dict[int, tuple[Kernel, tuple[tuple[Cost, dict[str, Cost]], ...]]] = field(
        default_factory=dict
    )  # by id: a hash is slow

    @property
    def gpu(self) -> Gpu:
        """GPU model."""
        return self.times.gpu

    def seconds(self, kernel: Kernel) -> float:
        """Return the time of all executions of a kernel (s)."""
        return self.times.seconds(kernel)

    def in_row(self, kernels: Iterable[Kernel]) -> OpAmounts:
        """Return the amounts of kernels that one op executes in sequence."""
        seconds: dict[str, float] = {}
        compute = memory = flop = size = 0.0
        for kernel in kernels:
            spent = self._of(kernel)
            seconds[kernel.kind] = seconds.get(kernel.kind, 0.0) + spent[0]
            compute, memory, flop, size = compute + spent[1], memory + spent[2], flop + spent[3], size + spent[4]
        return OpAmounts(seconds, gpus=((compute, memory, flop, size),))

    def _of(self, kernel: Kernel) -> tuple[float, float, float, float, float]:
        """Return (seconds, compute time, memory time, FLOP, bytes) of all executions of a kernel."""
        spent = self._spent.get(kernel)
        if spent is None:
            cost = self.times.cost(self.times.asked(kernel))
            amounts, moved = dict(cost.demand.amounts), {name: amount for name, amount, _ in cost.moved}
            times, taken = kernel.times, self.times.seconds(kernel)
            memory = min(taken, times * amounts.get("gpu.memory", 0.0))
            flop, size = times * moved.get("gpu.compute", 0.0), times * moved.get("gpu.memory", 0.0)
            spent = self._spent[kernel] = taken, taken, memory, flop, size
        return spent

    def apart(self, kernel: Kernel, device: str) -> list[Cost]:
        """Return the cost of each kernel that the library launches for a kernel of the model, on a GPU."""
        seen = self._seen.get(id(kernel))
        if seen is None:
            seen = self._seen[id(kernel)] = kernel, tuple(map(self._of_timed, self.times.choose(kernel)))
        costs = []
        for alone, placed in seen[1]:
            if device not in placed:
                placed[device] = rename_gpu(alone, device)
            costs.append(placed[device])
        return costs

    def _of_timed(self, timed: TimedKernel) -> tuple[Cost, dict[str, Cost]]:
        """Return the cost of a kernel on the GPU `_NAME`, and the cache of its copies by device."""
        key = timed.work, timed.slower
        if key not in self._alone:
            cost = scale_kernel(self.times.cost(timed.work), timed.slower, self.times.rates, f"{_NAME}.compute")
            self._alone[key] = self._unsure(cost, timed.work), {}
        return self._alone[key]

    def _unsure(self, cost: Cost, work: Work) -> Cost:
        """Return the cost with the errors of convolutions, if its kernel is one."""

        def unsure(term: Term) -> Term:
            errors = kernel_errors({"convolution": term.seconds}, self.gpu, work.dtype) if term.label == CONVOLUTION else ()
            return replace(term, doubts=errors) if errors else term

        return replace(cost, why=tuple(map(unsure, cost.why)))


def rename_gpu(cost: Cost, device: str) -> Cost:
    """Return the cost on another GPU of the same kind."""
    names = {f"{_NAME}.{kind}": f"{device}.{kind}" for kind in ("compute", "memory")}

    def name(capacity: str) -> str:
        return names.get(capacity, capacity)

    demand = cost.demand
    amounts = tuple([(name(capacity), amount) for capacity, amount in demand.amounts])
    holds = tuple([(name(capacity), part) for capacity, part in demand.holds])
    moved = tuple([(name(capacity), amount, unit) for capacity, amount, unit in cost.moved])
    why = [term.on(name(term.capacity), device) for term in cost.why]
    clocks = tuple([(name(capacity), part) for capacity, part in demand.clocks])
    drawn = Demand(
        demand.latency, amounts, demand.floor, holds, demand.share, demand.times, None, clocks, demand.start
    )  # three times as fast as `replace`
    return Cost(drawn, moved, tuple(why), cost.requests, cost.played, cost.choice, cost.wide, cost.exchange)


def busy_cost(machine: Machine, host: str, seconds: float, count: int) -> Cost | None:
    """Return the cost of a busy core of a host.

    The uncertainty is that of host time of a framework, on any core.

    Args:
        machine: machine of the host.
        host: CPU; "": only the time counts.
        seconds: duration (s); 0: the result is None.
        count: number of identical threads that the op represents.
    """
    if seconds <= 0:
        return None
    model = machine.device(host).model if host else None
    given, unsure = "given, on one core", (UncertaintySource("launch/host", "known", "the framework's host", seconds),)
    line = Term("time", given, ((given, precise(seconds, "s"), "workload"),), seconds, kind="stated", doubts=unsure)
    demand = model.busy(host, seconds).demand if isinstance(model, Cpu) else Demand(floor=seconds)
    drawn = len(demand.amounts) + len(demand.holds)
    return Cost(demand if count == 1 else replace(demand, times=(count,) * drawn), why=(line,))
