"""A job on a machine, and its failure rate by cause.

rate of a cause = number of parts of this kind in the job / mean time between failures of one part;  rate of the job = their sum
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any, Final, Protocol

from hwsim.failures.file import Failures, Restart, Spares, Spread
from hwsim.records import dataclass

SAME: Final = ("name", "restart", "spares", "spread", "shape", "runs", "seed")  # fields that a file of rates and a job share


class PartCounter(Protocol):
    """The interface of a machine that counts its parts."""

    def devices_of(self, kind: str, inside: str = "") -> tuple[str, ...]:
        """Return the full names of all devices of one kind in a node (default: in the machine)."""
        ...

    def node_of(self, name: str) -> str:
        """Return the node of a device."""
        ...


@dataclass(frozen=True, slots=True)
class FailureCause:
    """A cause of failures of a job.

    Args:
        name: name of the cause.
        count: number of parts that can fail.
        of: kind of these parts.
        rate: failure rate of all of them (1/s).
        replaced: whether the node is replaced and repaired.
    """

    name: str
    count: int
    of: str
    rate: float
    replaced: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class FailingJob:
    """A job with its failure rates and restart.

    Args:
        name: origin of the rates.
        gpus: number of GPUs.
        nodes: number of nodes.
        causes: causes of failures.
        restart: duration of a restart.
        spares: spare nodes.
        spread: uncertainty of the rates.
        shape: Weibull shape of the times between failures.
        runs: simulated runs.
        seed: seed of the simulated runs.
    """

    name: str
    gpus: int
    nodes: int
    causes: tuple[FailureCause, ...]
    restart: Restart = Restart()
    spares: Spares = Spares()
    spread: Spread = Spread()
    shape: float = 1.0
    runs: int = 400
    seed: int = 1

    @property
    def rate(self) -> float:
        """Failure rate of the job (1/s)."""
        return math.fsum(cause.rate for cause in self.causes)

    @property
    def mtbf_s(self) -> float:
        """Mean time between failures of the job (s)."""
        return 1.0 / self.rate if self.rate > 0 else math.inf

    @property
    def by_cause(self) -> dict[str, float]:
        """Share of the failures, by cause."""
        return {cause.name: cause.rate / self.rate for cause in self.causes if cause.rate > 0}

    @property
    def broken(self) -> float:
        """Average number of nodes in repair, while the job never waits."""
        return self.spares.repair * math.fsum(cause.rate for cause in self.causes if cause.replaced)

    @property
    def mtbf_of_gpu_s(self) -> float:
        """Mean time between failures per GPU with its share of all other parts (s), which makes published rates comparable."""
        return self.mtbf_s * self.gpus


def job_of(machine: PartCounter, failures: Failures, gpus: int | Iterable[str] | None = None) -> FailingJob:
    """Return the job of a training on a machine.

    Args:
        machine: machine whose parts are counted.
        failures: failure rates.
        gpus: number of its first GPUs, or their names (default: all).

    Raises:
        ValueError: the machine has none of the parts with a failure rate.
    """
    every = machine.devices_of("gpu")
    used = tuple(every[:gpus] if isinstance(gpus, int) else every if gpus is None else gpus)
    nodes = dict.fromkeys(map(machine.node_of, used))
    counts = {"gpu": len(used), "node": max(1, len(nodes))}

    def count(kind: str) -> int:
        if kind not in counts:
            inside = sum(len(machine.devices_of(kind, node)) for node in nodes)
            counts[kind] = inside or len(machine.devices_of(kind))
        return counts[kind]

    return job_sized(failures, {part.of or name: count(part.of or name) for name, part in failures.parts.items()} | counts)


def job_sized(failures: Failures, counts: dict[str, int]) -> FailingJob:
    """Return the job with these numbers of parts, such as {"gpu": 16384, "node": 2048}.

    Raises:
        ValueError: it has none of the parts with a failure rate.

    >>> from hwsim.failures.file import load_failures
    >>> job = job_sized(load_failures(), {"gpu": 16384, "node": 2048})
    >>> round(job.mtbf_s / 3600, 3), round(job.mtbf_of_gpu_s / 3600)
    (3.093, 50677)
    """
    causes = tuple(
        FailureCause(name, count, part.of or name, count / part.seconds, part.replace)
        for name, part in failures.parts.items()
        for count in (counts.get(part.of or name, 0),)
    )
    if not any(cause.rate > 0 for cause in causes):
        kinds = ", ".join(sorted({cause.of for cause in causes}))
        raise ValueError(f"the job has no part with a failure rate: {kinds}")
    same: dict[str, Any] = {key: getattr(failures, key) for key in SAME}
    return FailingJob(gpus=counts.get("gpu", 0), nodes=counts.get("node", 1), causes=causes, **same)
