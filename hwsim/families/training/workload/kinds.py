"""Trainings on several kinds of GPUs: each GPU has its own kernel times, and a stage group waits for its slowest GPU."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from hwsim.devices import CannotCompute, Gpu
from hwsim.devices.roofline import peak_of
from hwsim.families.training.workload.costs import KernelCosts, OpAmounts
from hwsim.graph.opgraph import StageGroupLeader
from hwsim.machine import Machine
from hwsim.models.capacity_amounts import Names
from hwsim.models.framework import Framework
from hwsim.models.kernel_times import KernelTimes
from hwsim.models.layer import Exchange, Item, Kernel
from hwsim.records import dataclass
from hwsim.spec.memo import memo_table

MOST: Final = 16  # maximum number of GPUs whose costs a study caches


def kinds_of(machine: Machine, devices: Sequence[str], framework: Framework) -> GpuKinds:
    """Return the kinds of GPUs among devices, with their costs under a framework.

    Raises:
        CannotCompute: a device is not a GPU.
    """
    gpus: list[Gpu] = []
    numbers: dict[int, int] = {}  # kind by identity of the model, which equal parts share
    samples = machine.samples(devices)
    alike = all(sample.model == samples[0].model for sample in samples)
    for name, model in (
        ((sample.name, sample.model) for sample in samples) if alike else ((name, machine.device(name).model) for name in devices)
    ):
        if not isinstance(model, Gpu):
            raise CannotCompute(f"{name} is not a GPU; training requires GPUs", "device: gpu*")
        if id(model) not in numbers:
            if model not in gpus:
                gpus.append(model)
            numbers[id(model)] = gpus.index(model)
    costs = [_costs_of(gpu, framework) for gpu in gpus]
    return GpuKinds(costs, {} if len(gpus) == 1 else {name: numbers[id(machine.device(name).model)] for name in devices})


def _costs_of(gpu: Gpu, framework: Framework) -> KernelCosts:
    """Return the costs on a GPU, from the cache of the study if there is one."""
    shared = memo_table("kernels")
    if shared is None:
        return KernelCosts(KernelTimes(gpu, framework))
    _, its, costs = shared.get(id(gpu), (None, None, None))
    if costs is None or its != framework:
        if len(shared) >= MOST:
            shared.clear()
        costs = KernelCosts(KernelTimes(gpu, framework))
        shared[id(gpu)] = gpu, framework, costs
    kept: KernelCosts = costs
    return kept


@dataclass(frozen=True, slots=True)
class GpuKinds:
    """The kinds of GPUs of a training.

    Args:
        costs: kernel costs of each kind.
        of: kind of each device; empty if there is only one kind.
    """

    costs: Sequence[KernelCosts]
    of: Mapping[str, int]

    def on(self, device: str) -> KernelCosts:
        """Return the kernel costs of a device."""
        return self.costs[self.of.get(device, 0)]

    def among(self, group: Names) -> tuple[int, ...]:
        """Return the kinds in a stage group, ascending."""
        return tuple(sorted({self.of[name] for name in group})) if self.of else (0,)

    def places(self, group: Names) -> tuple[int, ...]:
        """Return the index into `among` of the kind of each device of a stage group."""
        if not self.of:
            return (0,) * len(group)
        among = self.among(group)
        return tuple(among.index(self.of[name]) for name in group)

    def bandwidth(self, group: Names) -> float:
        """Return the largest memory bandwidth of the GPUs of a stage group (B/s)."""
        return max(self.costs[kind].gpu.memory.bandwidth for kind in self.among(group))

    def peak(self, devices: Sequence[str], dtype: str) -> float:
        """Return the sum of the peaks of devices (FLOP/s)."""
        peaks = [peak_of(costs.gpu.flop, dtype, "gpu")[1] for costs in self.costs]
        return math.fsum(peaks[self.of[name]] for name in devices) if self.of else peaks[0] * len(devices)

    def slowest(self, kernels: Iterable[Kernel]) -> KernelCosts:
        """Return the costs of the kind that takes longest for kernels."""
        if len(self.costs) == 1:
            return self.costs[0]
        listed = tuple(kernels)
        return max(self.costs, key=lambda costs: math.fsum(map(costs.seconds, listed)))

    def run(self, run: Iterable[Kernel], among: Sequence[int]) -> OpAmounts:
        """Return the amounts of kernels without exchanges between them; the slowest kind sets the time."""
        items = tuple(run)
        spent = [self.costs[kind].in_row(items) for kind in among]
        if len(spent) == 1:
            return spent[0]
        longest = max(spent, key=lambda kind: kind.total)
        return OpAmounts(longest.seconds, gpus=tuple(kind.gpus[0] for kind in spent if kind.gpus))

    def between(self, items: Iterable[Item], among: Sequence[int]) -> OpAmounts:
        """Return the amounts of all kernels of items; at each exchange, the stage group waits for its slowest GPU."""
        listed = tuple(items)
        if len(among) == 1:
            return self.run((item for item in listed if isinstance(item, Kernel)), among)
        spent, run = OpAmounts(), list[Kernel]()
        for item in listed:
            if isinstance(item, Exchange):
                spent, run = spent.and_then(self.run(run, among)), []
            else:
                run.append(item)
        return spent.and_then(self.run(run, among))

    def first_of_each(self, devices: Sequence[str]) -> list[str]:
        """Return the first device of each kind."""
        first: dict[int, str] = {}
        for name in devices:
            first.setdefault(self.of.get(name, 0), name)
        return list(first.values())

    def observed(self, groups: Sequence[Sequence[tuple[Names, int]]]) -> tuple[tuple[str, ...], tuple[StageGroupLeader, ...]]:
        """Return (devices whose queues show the time of a step, the number of groups that each represents).

        The first group of every combination of kinds is observed.

        Args:
            groups: by stage, the groups of GPUs with common ops, each with the number that it represents.
        """
        devices: list[str] = []
        speaks: list[StageGroupLeader] = []
        for of_stage in groups:
            first: dict[tuple[int, ...], str] = {}
            count: dict[tuple[int, ...], int] = {}
            for group, represents in of_stage if self.of else of_stage[:1]:
                combination = tuple(sorted(self.of[name] for name in group)) if self.of else ()
                first.setdefault(combination, group[0])
                count[combination] = count.get(combination, 0) + represents
            devices += first.values()
            speaks += [StageGroupLeader(of_stage[0][0][0], number) for number in count.values()]
        return tuple(devices), tuple(speaks) if len(devices) > len(groups) else ()

    def groups(self, devices: Sequence[str]) -> tuple[Names, ...]:
        """Return the devices of each kind; () if there is only one kind."""
        if not self.of:
            return ()
        return tuple(tuple(name for name in devices if self.of[name] == kind) for kind in range(len(self.costs)))
