"""GPUs of several kinds in one training: each computes its own kernels, and a team goes on when the slowest of it is done."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from hwsim.devices import Gpu
from hwsim.graph.opgraph import Speaks
from hwsim.machine import Machine
from hwsim.models import Exchange, Item, Kernel
from hwsim.models.layer import kernels
from hwsim.records import dataclass
from hwsim.workload.training.costs import Computing, Spent
from hwsim.workload.training.layout import Layout, Names


def kinds_of(machine: Machine, devices: Sequence[str]) -> tuple[tuple[Gpu, ...], tuple[int, ...]] | str:
    """(the kinds, the kind of each device); of devices of one kind no numbers.  A text: the first that is no GPU."""
    first = machine.samples(devices)
    for each in first:
        if not isinstance(each.model, Gpu):
            return each.name
    if all(each.model == first[0].model for each in first):
        return (_gpu(first[0].model),), ()
    found: list[Gpu] = []
    numbers: dict[int, int] = {}  # of models by their identity: parts share theirs
    kinds = []
    for name in devices:
        model = _gpu(machine.device(name).model)
        if id(model) not in numbers:
            if model not in found:
                found.append(model)
            numbers[id(model)] = found.index(model)
        kinds.append(numbers[id(model)])
    return tuple(found), tuple(kinds)


def _gpu(model: object) -> Gpu:
    if not isinstance(model, Gpu):
        raise TypeError("no gpu")
    return model


@dataclass(frozen=True, slots=True)
class Kinds:
    """computing: of each kind.  of: the kind of each device; empty where there is one kind."""

    computing: Sequence[Computing]
    of: Mapping[str, int]

    def among(self, team: Names) -> tuple[int, ...]:
        """The kinds in a team, in order."""
        return tuple(sorted({self.of[name] for name in team})) if self.of else (0,)

    def places(self, team: Names) -> tuple[int, ...]:
        """Of each of a team where its kind is in `among`."""
        if not self.of:
            return (0,) * len(team)
        among = self.among(team)
        return tuple(among.index(self.of[name]) for name in team)

    def bandwidth(self, team: Names) -> float:
        """Of the memory of the team's fastest."""
        return max(self.computing[kind].speed.gpu.memory.bandwidth for kind in self.among(team))

    def run(self, run: Iterable[Kernel], among: Sequence[int]) -> Spent:
        """Kernels between which the team exchanges nothing: as long as the slowest takes."""
        items = tuple(run)
        found = [self.computing[kind].kernels(items) for kind in among]
        if len(found) == 1:
            return found[0]
        slowest = max(found, key=lambda each: each.total)
        return Spent(slowest.seconds, each=tuple(each.each[0] for each in found if each.each))

    def between(self, items: Iterable[Item], among: Sequence[int]) -> Spent:
        """All kernels of these items, the slowest of the team waited for at each collective."""
        listed = tuple(items)
        if len(among) == 1:
            return self.run(kernels(listed), among)
        spent, run = Spent(), list[Kernel]()
        for item in listed:
            if isinstance(item, Exchange):
                spent, run = spent.and_then(self.run(run, among)), []
            else:
                run.append(item)
        return spent.and_then(self.run(run, among))

    def alike(self, layout: Layout, stages: int, copies: int) -> bool:
        """Whether every copy has the same kinds in the same places."""
        if not self.of:
            return True
        found = {tuple(self.of[name] for stage in range(stages) for name in layout.team(stage, copy)) for copy in range(copies)}
        return len(found) == 1

    def first_of_each(self, devices: Sequence[str]) -> list[str]:
        """The first device of each kind."""
        found: dict[int, str] = {}
        for name in devices:
            found.setdefault(self.of.get(name, 0), name)
        return list(found.values())

    def told(self, layout: Layout, stages: int, copies: Sequence[int]) -> tuple[tuple[str, ...], tuple[Speaks, ...]]:
        """(devices whose queues tell what a step goes to: of each stage the first of every make of team; what they speak for)."""
        devices: list[str] = []
        speaks: list[Speaks] = []
        for stage in range(stages):
            leader = layout.team(stage, copies[0])[0]
            first: dict[tuple[int, ...], str] = {}
            count: dict[tuple[int, ...], int] = {}
            for copy in copies if self.of else copies[:1]:
                team = layout.team(stage, copy)
                make = tuple(sorted(self.of[name] for name in team)) if self.of else ()
                first.setdefault(make, team[0])
                count[make] = count.get(make, 0) + 1
            devices += first.values()
            speaks += [Speaks(leader, many) for many in count.values()]
        return tuple(devices), tuple(speaks) if len(devices) > stages else ()

    def groups(self, devices: Sequence[str]) -> tuple[Names, ...]:
        """The devices of each kind, where there are several."""
        if not self.of:
            return ()
        return tuple(tuple(name for name in devices if self.of[name] == kind) for kind in range(len(self.computing)))
