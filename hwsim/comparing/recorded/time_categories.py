"""Categories of time for recorded and simulated runs.

- kernels: computing on a GPU, or on a CPU in a run without GPUs.
- transfer: copies, and collectives after the arrival of their last rank.
- waiting: for another rank, another GPU, or a free server of a pool.
- launch gaps: launch latency, and gaps between ops of a stream.
- host: runtime calls, operators and Python on host threads; dispatch of a simulated program.
- unexplained: delay that no rule explains.
- not recorded: before the first and after the last slice of a rank.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from enum import IntEnum
from typing import Final

from hwsim.graph.opgraph import Label
from hwsim.results.bound import COLLECTIVES
from hwsim.results.cause import Cause
from hwsim.results.work import AMONG
from hwsim.views.trace.slices import REPLAYED


class TimeCategory(IntEnum):
    """Categories of time, in the order of tables."""

    KERNELS = 0
    TRANSFER = 1
    WAITING = 2
    LAUNCH = 3
    HOST = 4
    UNEXPLAINED = 5
    OUTSIDE = 6

    @property
    def words(self) -> str:
        """Name in tables and JSON."""
        return WORDS[self]


WORDS: Final[Mapping[TimeCategory, str]] = {
    TimeCategory.KERNELS: "kernels",
    TimeCategory.TRANSFER: "transfer",
    TimeCategory.WAITING: "waiting",
    TimeCategory.LAUNCH: "launch gaps",
    TimeCategory.HOST: "host",
    TimeCategory.UNEXPLAINED: "unexplained",
    TimeCategory.OUTSIDE: "not recorded",
}
_OF_KIND: Final[Mapping[str, TimeCategory]] = {  # kind of op in replays and programs -> category
    "kernel": TimeCategory.KERNELS,
    "set": TimeCategory.KERNELS,
    "copy": TimeCategory.TRANSFER,
    "collective": TimeCategory.TRANSFER,
    "latency": TimeCategory.LAUNCH,
    "gap": TimeCategory.LAUNCH,
    "delay": TimeCategory.UNEXPLAINED,
    "start": TimeCategory.OUTSIDE,
    "arrive": TimeCategory.WAITING,
    "join": TimeCategory.WAITING,
    "call": TimeCategory.HOST,
    "python": TimeCategory.HOST,
    "dispatch": TimeCategory.HOST,
    "return": TimeCategory.HOST,
    **dict.fromkeys((*AMONG, *COLLECTIVES), TimeCategory.TRANSFER),
}
_OF_IMPORTERS: Final = re.compile(r"(rank\d+\.)?gpu\d*")
SHARED: Final = frozenset({*AMONG, *COLLECTIVES} - {REPLAYED})  # kinds of ops of several GPUs that are attributed to one GPU


def gpus_of(devices: Iterable[str], kinds: Mapping[str, str]) -> frozenset[str]:
    """Return the GPUs among some devices: by kind, or by the names of importers if the machine has no such device.

    >>> sorted(gpus_of(["rank3.gpu0", "rank3.host", "accel", "gpux"], {"accel": "gpu", "gpux": "cpu"}))
    ['accel', 'rank3.gpu0']
    """
    return frozenset(name for name in devices if kinds.get(name, "gpu" if _OF_IMPORTERS.fullmatch(name) else "") == "gpu")


def of_op(label: Label, gpus: frozenset[str]) -> TimeCategory:
    """Return the category of the time in which an op runs.

    >>> [of_op(Label("x", kind, device), frozenset({"gpu0"})).words for kind, device in
    ...  (("kernel", "gpu0"), ("matmul", "gpu0"), ("matmul", "cpu"), ("allreduce", "gpu0"), ("gap", "gpu0"))]
    ['kernels', 'kernels', 'host', 'transfer', 'launch gaps']
    """
    if (place := _OF_KIND.get(label.kind)) is not None:
        return place
    return TimeCategory.KERNELS if label.device in gpus or not gpus else TimeCategory.HOST


def of_cause(label: Label, cause: Cause, gpus: frozenset[str]) -> TimeCategory:
    """Return the category of a segment of a critical path, in which an op runs or waits for a cause."""
    if cause.kind in ("wait", "pool"):
        return TimeCategory.WAITING
    if cause.kind in ("dispatch", "return"):
        return TimeCategory.HOST
    place = of_op(label, gpus)
    return TimeCategory.LAUNCH if cause.kind == "latency" and place == TimeCategory.KERNELS else place
