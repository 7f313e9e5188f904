"""A recorded run: what each rank did, as columns, whatever tool wrote it.

Readers (Kineto, nsys, Chakra) make a `Recording`; rules make an op graph of it (`replay.py`).
"""

from __future__ import annotations

from enum import IntEnum
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from hwsim.records import dataclass
from hwsim.ticks import FEMTO

Ints = NDArray[np.int64]
Small = NDArray[np.int32]
HOST: Final = -1


class What(IntEnum):
    """Kinds of slices. Slices of a host thread nest, slices of a stream follow one another."""

    OP = 0  # an operator of a framework on a host thread: aten::mm
    PYTHON = 1  # a function of Python
    MARK = 2  # an annotation: a step or a region; no work
    CALL = 3  # a call of CUDA's or HIP's runtime or driver
    KERNEL = 4
    COPY = 5
    SET = 6  # memset
    WAIT = 7  # a synchronisation as the device saw it (Kineto's cuda_sync)


@dataclass(frozen=True, slots=True)
class Lane:
    """A host thread (device HOST) or a stream of the rank's GPU number `device`."""

    name: str
    device: int
    number: int


@dataclass(frozen=True, slots=True)
class Collective:
    """A collective, as the file describes it.

    Args:
        name: allreduce, allgather, reduce-scatter, alltoall, broadcast, send, recv, barrier, ... as hwsim's ops are called.
        elements_in, elements_out: elements that a rank puts in and gets out; 0 if the file does not say.
        dtype: as of hwsim's units of elements (fp32, bf16, ...); "" if unknown.
        ranks: ranks of the group in order; empty if the file does not say. size: how many they are, 0 if unknown.
        group: identifier of the process group; "" if unknown.
        peer: the other rank of a send or recv, -1 for none; tag: what it has in common with the one that it meets.
    """

    name: str
    elements_in: int = 0
    elements_out: int = 0
    dtype: str = ""
    ranks: tuple[int, ...] = ()
    size: int = 0
    group: str = ""
    peer: int = -1
    tag: int = 0


Shape = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Facts:
    """Shapes and amounts of a slice. Slices with equal facts share one object.

    Args:
        shapes: per input a shape, () for a number, a tuple of shapes for a list of tensors; None if the file has none.
        dtypes: per input a type in the words of the file ("float", "c10::BFloat16"). strides: as `shapes`.
        values: inputs that are no tensors, as text, "" for tensors.
        bytes: moved by a copy or set, by a memory op.
        collective: the exchange that it is a part of.
        waits_on_stream, waits_on_link: for a WAIT, the stream and the link of the call that recorded the event; else -1.
        kind: words of the file that tell the kind of a WAIT or copy ("Stream Wait Event", "HtoD").
        counted: operations and bytes that the file counts (num_ops and tensor_size of Chakra); None without.
        result: which of the shapes is that of the result, where the file has no strides of a convolution; -1 without.
    """

    shapes: tuple[Any, ...] | None = None
    dtypes: tuple[str, ...] = ()
    strides: tuple[Any, ...] = ()
    values: tuple[str, ...] = ()
    bytes: int = 0
    collective: Collective | None = None
    waits_on_stream: int = -1
    waits_on_link: int = -1
    kind: str = ""
    counted: tuple[float, float] | None = None
    result: int = -1


@dataclass(frozen=True, slots=True, eq=False)
class Slices:
    """Slices of a rank in order of start, the longer first; every column has one entry per slice.

    what: `What`. name, lane, facts: indices into the tables of the rank; facts -1 for none.
    start, duration: fs; start counts from `Recording.zero`, with the shift of the rank's clock already applied.
    link: number that a call and the kernels that it launched share (Kineto's correlation); -1 for none.
    """

    what: NDArray[np.uint8]
    name: Small
    lane: Small
    start: Ints
    duration: Ints
    link: Ints
    facts: Small

    def __len__(self) -> int:
        return len(self.what)

    @property
    def end(self) -> Ints:
        """fs."""
        return self.start + self.duration


@dataclass(frozen=True, slots=True, eq=False)
class Edges:
    """Dependencies that a file states itself (Chakra): the slice `before` ends before `then` starts."""

    before: Small
    then: Small


@dataclass(frozen=True, slots=True, eq=False)
class Rank:
    """One process.

    Args:
        number: rank; world: ranks of the job, 0 if the file does not say. file: where it was read.
        host: name of its host, "" if unknown; devices: names of the GPUs that it used, by number.
        shift: fs that were added to its clock. stated: dependencies of the file itself.
    """

    number: int
    world: int
    file: str
    host: str
    devices: tuple[tuple[int, str], ...]
    slices: Slices
    names: tuple[str, ...]
    lanes: tuple[Lane, ...]
    facts: tuple[Facts, ...]
    stated: Edges | None = None
    shift: int = 0


@dataclass(frozen=True, slots=True)
class Left:
    """Events that are not in a recording, or have no part in a replay: how many, how long in all (fs), and why."""

    name: str
    count: int
    duration: int
    why: str

    def to_json(self) -> dict[str, Any]:
        """The event in a document."""
        return {"name": self.name, "count": self.count, "time_s": self.duration / FEMTO, "why": self.why}


@dataclass(frozen=True, slots=True)
class Recording:
    """A run as a tool recorded it: ranks in order of number.

    Args:
        zero: seconds since 1970 of time 0, 0 if unknown. notes: what a reader had to assume, in words.
        clocked: false if a reader made the starts of each rank alone, so that starts of two ranks cannot be compared.
    """

    format: str
    ranks: tuple[Rank, ...]
    left: tuple[Left, ...] = ()
    zero: float = 0.0
    notes: tuple[str, ...] = ()
    clocked: bool = True
