"""Assign the ranks of a recording to devices of a machine."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from hwsim.devices import Gpu
from hwsim.devices.gpu_memory import Launch
from hwsim.importers.recording import Recording
from hwsim.machine import Machine
from hwsim.records import dataclass


class WrongMachine(ValueError):
    """An error for a machine with too few or unsuitable devices for the ranks."""


@dataclass(frozen=True, slots=True)
class RankPlacement:
    """The devices of the ranks of a recording.

    Args:
        machine: the machine.
        gpus: GPU of each rank, by position; a CPU for a rank without a GPU.
        all: GPUs of the machine, in order.
        by_number: whether rank r is on GPU r.
        starts: interval between kernel starts on a stream, by GPU (s).
    """

    machine: Machine
    gpus: tuple[str, ...]
    all: tuple[str, ...]
    by_number: bool
    starts: Mapping[str, float]

    def host(self, position: int) -> str:
        """Return the nearest CPU of a rank.

        Raises:
            WrongMachine: no CPU is linked to its GPU.
        """
        cpu = self.machine.host_of(self.gpus[position], linked=True)
        if not cpu:
            raise WrongMachine(f"the machine has no CPU that is linked to {self.gpus[position]}")
        return cpu

    def ends(self, kind: str, position: int) -> tuple[str, str] | None:
        """Return source and target of a copy, by its kind (HtoD, DtoH, DtoD, PtoP); None if unknown."""
        gpu = self.gpus[position]
        for letters, (source, target) in {"HtoD": ("host", "gpu"), "DtoH": ("gpu", "host"), "DtoD": ("gpu", "gpu")}.items():
            if letters in kind:
                names = {"host": self.host(position), "gpu": gpu} if "H" in letters else {"gpu": gpu}
                return names[source], names[target]
        if "PtoP" in kind and len(self.all) > 1:
            return gpu, self.all[(self.all.index(gpu) + 1) % len(self.all)]
        return None

    def members(self, ranks: Sequence[int], together: Sequence[int], count: int) -> tuple[str, ...] | None:
        """Return the GPUs of a group of `count` ranks: by rank number, or recorded ranks first; None if there are too few."""
        if self.by_number and len(ranks) == count and max(ranks, default=0) < len(self.all):
            return tuple(self.all[rank] for rank in ranks)
        chosen = list(dict.fromkeys(self.gpus[position] for position in together))
        chosen += [gpu for gpu in self.all if gpu not in chosen]
        return tuple(sorted(chosen[:count], key=self.all.index)) if len(chosen) >= count else None


def placed(recording: Recording, machine: Machine) -> RankPlacement:
    """Assign rank r to GPU r if the machine has enough GPUs; else assign ranks to GPUs in order.

    Raises:
        WrongMachine: no rank uses a GPU, or more ranks do than the machine has GPUs.
    """
    gpus = machine.devices_of("gpu")
    numbers = tuple(rank.number for rank in recording.ranks)
    uses = [any(lane.device >= 0 for lane in rank.lanes) for rank in recording.ranks]
    if not any(uses):
        raise WrongMachine("no rank uses a GPU, and host threads keep their times; `hwsim record` predicts PyTorch on a CPU")
    if sum(uses) > len(gpus):  # integers
        few = "no GPU" if not gpus else "one GPU" if len(gpus) == 1 else f"{len(gpus)} GPUs"
        needed = "one rank uses a GPU" if sum(uses) == 1 else f"{sum(uses)} ranks use a GPU each"  # integers
        raise WrongMachine(f"{needed}, and the machine has {few}")
    by_number = max(numbers, default=0) < len(gpus) and len(set(numbers)) == len(numbers)
    cpus = machine.devices_of("cpu")
    chosen = []
    for position, (number, gpu) in enumerate(zip(numbers, uses, strict=True)):
        if not gpu and not cpus:
            raise WrongMachine("the machine has no CPU")
        chosen.append((gpus[number if by_number else sum(uses[:position])]) if gpu else cpus[position % len(cpus)])  # integers
    return RankPlacement(machine, tuple(chosen), tuple(gpus), by_number, {name: _start(machine, name) for name in gpus})


def _start(machine: Machine, name: str) -> float:
    model = machine.device(name).model
    if not isinstance(model, Gpu):
        return 0.0
    return model.launch.by("stream")[1] if isinstance(model.launch, Launch) else model.launch
