"""Places of the time, alike for recorded and simulated runs.

- kernels: a GPU computes; without GPUs, a CPU does.
- transfer: copies, and collectives once their last rank has come.
- waiting: for another rank, another GPU, or a server of a pool.
- launch gaps: from a launch to the start of its op, and between ops of a stream.
- host: calls, operators and Python on host threads; dispatch of a simulated program.
- unexplained: delay that no rule finds a reason for.
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


class Where(IntEnum):
    """Places where time goes, in the order of tables."""

    KERNELS = 0
    TRANSFER = 1
    WAITING = 2
    LAUNCH = 3
    HOST = 4
    UNEXPLAINED = 5
    OUTSIDE = 6

    @property
    def words(self) -> str:
        """Its name in tables."""
        return WORDS[self]


WORDS: Final[Mapping[Where, str]] = {
    Where.KERNELS: "kernels",
    Where.TRANSFER: "transfer",
    Where.WAITING: "waiting",
    Where.LAUNCH: "launch gaps",
    Where.HOST: "host",
    Where.UNEXPLAINED: "unexplained",
    Where.OUTSIDE: "not recorded",
}
_OF_KIND: Final[Mapping[str, Where]] = {  # kinds of ops of replays, and of programs
    "kernel": Where.KERNELS,
    "set": Where.KERNELS,
    "copy": Where.TRANSFER,
    "collective": Where.TRANSFER,
    "latency": Where.LAUNCH,
    "gap": Where.LAUNCH,
    "delay": Where.UNEXPLAINED,
    "start": Where.OUTSIDE,
    "arrive": Where.WAITING,
    "join": Where.WAITING,
    "call": Where.HOST,
    "python": Where.HOST,
    "dispatch": Where.HOST,
    "return": Where.HOST,
    **dict.fromkeys((*AMONG, *COLLECTIVES), Where.TRANSFER),
}
_OF_IMPORTERS: Final = re.compile(r"(rank\d+\.)?gpu\d*")
SHARED: Final = frozenset({*AMONG, *COLLECTIVES} - {REPLAYED})  # ops of several GPUs that stand on one


def gpus_of(devices: Iterable[str], kinds: Mapping[str, str]) -> frozenset[str]:
    """The GPUs among some devices: by their kinds, and those that no machine has by the names that importers give.

    >>> sorted(gpus_of(["rank3.gpu0", "rank3.host", "accel", "gpux"], {"accel": "gpu", "gpux": "cpu"}))
    ['accel', 'rank3.gpu0']
    """
    return frozenset(name for name in devices if kinds.get(name, "gpu" if _OF_IMPORTERS.fullmatch(name) else "") == "gpu")


def of_op(label: Label, gpus: frozenset[str]) -> Where:
    """The place of the time in which an op runs.

    >>> [of_op(Label("x", kind, device), frozenset({"gpu0"})).words for kind, device in
    ...  (("kernel", "gpu0"), ("matmul", "gpu0"), ("matmul", "cpu"), ("allreduce", "gpu0"), ("gap", "gpu0"))]
    ['kernels', 'kernels', 'host', 'transfer', 'launch gaps']
    """
    if (place := _OF_KIND.get(label.kind)) is not None:
        return place
    return Where.KERNELS if label.device in gpus or not gpus else Where.HOST


def of_cause(label: Label, cause: Cause, gpus: frozenset[str]) -> Where:
    """The place of a piece of a critical path: an op that runs, or waits for a cause."""
    if cause.kind in ("wait", "pool"):
        return Where.WAITING
    if cause.kind in ("dispatch", "return"):
        return Where.HOST
    place = of_op(label, gpus)
    return Where.LAUNCH if cause.kind == "latency" and place == Where.KERNELS else place
