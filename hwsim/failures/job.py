"""A job on a machine of any shape: how often something of it fails, by cause.

rate of a cause = how many of the part the job has / mean time between failures of one;  rates of all causes add up
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any, Final, Protocol

from hwsim.failures.file import Failures, Restart, Spares, Spread
from hwsim.records import dataclass

SAME: Final = ("name", "restart", "spares", "spread", "shape", "runs", "seed")  # of a file of rates, and of a job


class Parts(Protocol):
    """A machine, as far as its parts are counted."""

    def devices_of(self, kind: str, inside: str = "") -> tuple[str, ...]:
        """Full names of all devices of one kind in a node (default: everywhere)."""
        ...

    def node_of(self, name: str) -> str:
        """The node that a device is in."""
        ...


@dataclass(frozen=True, slots=True)
class Cause:
    """One cause of failures of a job.

    count, of: how many parts can fail, and what they are; rate: failures a second of all of them; replaced: their node goes to
    repair.
    """

    name: str
    count: int
    of: str
    rate: float
    replaced: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """The rates of failures of a job, and its restart.

    name: whose rates they are. gpus, nodes: its size.
    """

    name: str
    gpus: int
    nodes: int
    causes: tuple[Cause, ...]
    restart: Restart = Restart()
    spares: Spares = Spares()
    spread: Spread = Spread()
    shape: float = 1.0
    runs: int = 400
    seed: int = 1

    @property
    def rate(self) -> float:
        """Failures a second."""
        return math.fsum(cause.rate for cause in self.causes)

    @property
    def mtbf_s(self) -> float:
        """Mean seconds between failures of the job."""
        return 1.0 / self.rate if self.rate > 0 else math.inf

    @property
    def by_cause(self) -> dict[str, float]:
        """Share of the failures by cause."""
        return {cause.name: cause.rate / self.rate for cause in self.causes if cause.rate > 0}

    @property
    def broken(self) -> float:
        """Nodes that are in repair, in the mean, while the job never waits."""
        return self.spares.repair * math.fsum(cause.rate for cause in self.causes if cause.replaced)

    @property
    def mtbf_of_gpu_s(self) -> float:
        """Mean seconds between failures of one GPU, with its part of everything else: how published rates compare."""
        return self.mtbf_s * self.gpus


def job_of(machine: Parts, failures: Failures, gpus: int | Iterable[str] | None = None) -> Job:
    """The job that a training on a machine is.

    gpus: how many GPUs of it, the first ones, or their names (default: all).

    Raises:
        ValueError: it has none of the parts that fail.
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


def job_sized(failures: Failures, counts: dict[str, int]) -> Job:
    """The job with these numbers of parts: {"gpu": 16384, "node": 2048}.

    Raises:
        ValueError: it has none of the parts that fail.

    >>> from hwsim.failures.file import load_failures
    >>> job = job_sized(load_failures(), {"gpu": 16384, "node": 2048})
    >>> round(job.mtbf_s / 3600, 3), round(job.mtbf_of_gpu_s / 3600)
    (3.093, 50677)
    """
    causes = tuple(
        Cause(name, many, part.of or name, many / part.seconds, part.replace)
        for name, part in failures.parts.items()
        for many in (counts.get(part.of or name, 0),)
    )
    if not any(cause.rate > 0 for cause in causes):
        kinds = ", ".join(sorted({cause.of for cause in causes}))
        raise ValueError(f"the job has none of the parts that fail: {kinds}")
    same: dict[str, Any] = {key: getattr(failures, key) for key in SAME}
    return Job(gpus=counts.get("gpu", 0), nodes=counts.get("node", 1), causes=causes, **same)
