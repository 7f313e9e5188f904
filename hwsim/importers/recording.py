"""The common form of recorded runs of all formats: slices of host threads and GPU streams per rank, as columns.

Readers (Kineto, nsys, Chakra) return a `Recording`; `replay.py` turns it into an op graph.
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
    """Kinds of slices. Slices of a host thread nest; slices of a stream follow one another."""

    OP = 0  # an operator of a framework on a host thread: aten::mm
    PYTHON = 1  # a function of Python
    MARK = 2  # an annotation: a step or a region; no work
    CALL = 3  # a call of CUDA's or HIP's runtime or driver
    KERNEL = 4
    COPY = 5
    SET = 6  # memset
    WAIT = 7  # a synchronisation on the device (Kineto's cuda_sync)


@dataclass(frozen=True, slots=True)
class RecordedLane:
    """A host thread (`device` is HOST), or a stream of the rank's GPU number `device`."""

    name: str
    device: int
    number: int


@dataclass(frozen=True, slots=True)
class RecordedCollective:
    """A collective, as the file describes it.

    Args:
        name: hwsim's name of the operation (allreduce, allgather, reduce-scatter, alltoall, broadcast, send, recv, barrier, ...).
        elements_in: input elements per rank; 0 if unknown.
        elements_out: output elements per rank; 0 if unknown.
        dtype: hwsim's name of the data type (fp32, bf16, ...); "" if unknown.
        ranks: ranks of the group, in order; empty if unknown.
        size: number of ranks in the group; 0 if unknown.
        group: identifier of the process group; "" if unknown.
        peer: other rank of a send or recv; -1 otherwise.
        tag: tag that a send and its recv share.
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
class SliceFacts:
    """The shapes and amounts of a slice. Slices with equal facts share one object.

    Args:
        shapes: shape of each input, () for a number, a tuple of shapes for a list of tensors; None if not recorded.
        dtypes: type of each input, as in the file ("float", "c10::BFloat16").
        strides: strides of each input, in the form of `shapes`.
        values: inputs that are no tensors, as text; "" for tensors.
        bytes: bytes moved by a copy, memset or memory op.
        collective: collective to which the slice belongs.
        waits_on_stream: stream of the event for which a WAIT waits; else -1.
        waits_on_link: link of the call that recorded the event for which a WAIT waits; else -1.
        kind: kind of a WAIT or copy, as in the file ("Stream Wait Event", "HtoD").
        counted: operations and bytes, if the file counts them (num_ops and tensor_size of Chakra).
        result: index of the shape of the result, if the file has no strides of a convolution; else -1.
    """

    shapes: tuple[Any, ...] | None = None
    dtypes: tuple[str, ...] = ()
    strides: tuple[Any, ...] = ()
    values: tuple[str, ...] = ()
    bytes: int = 0
    collective: RecordedCollective | None = None
    waits_on_stream: int = -1
    waits_on_link: int = -1
    kind: str = ""
    counted: tuple[float, float] | None = None
    result: int = -1


@dataclass(frozen=True, slots=True, eq=False)
class RecordedSlices:
    """The slices of a rank as columns, in order of start, the longer first.

    Args:
        what: `What`.
        name: index into `Rank.names`.
        lane: index into `Rank.lanes`.
        start: start (fs after `Recording.zero`, on the shifted clock of the rank).
        duration: duration (fs).
        link: correlation number that a call and its kernels share; -1 for none.
        facts: index into `Rank.facts`; -1 for none.
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
        """End of each slice (fs)."""
        return self.start + self.duration


@dataclass(frozen=True, slots=True, eq=False)
class RecordedDependencies:
    """The dependencies in a file (Chakra): slice `before` ends before slice `then` starts."""

    before: Small
    then: Small


@dataclass(frozen=True, slots=True, eq=False)
class Rank:
    """A process of the run.

    Args:
        number: rank.
        world: number of ranks in the job; 0 if unknown.
        file: path of the file.
        host: host name; "" if unknown.
        devices: (number, name) of each GPU that it used.
        stated: dependencies in the file.
        shift: time added to its clock (fs).
    """

    number: int
    world: int
    file: str
    host: str
    devices: tuple[tuple[int, str], ...]
    slices: RecordedSlices
    names: tuple[str, ...]
    lanes: tuple[RecordedLane, ...]
    facts: tuple[SliceFacts, ...]
    stated: RecordedDependencies | None = None
    shift: int = 0


@dataclass(frozen=True, slots=True)
class OmittedEvents:
    """The omitted events of one kind: name, number, total time (fs) and the reason."""

    name: str
    count: int
    duration: int
    why: str

    def to_json(self) -> dict[str, Any]:
        """Return the row of the JSON document."""
        return {"name": self.name, "count": self.count, "time_s": self.duration / FEMTO, "why": self.why}


@dataclass(frozen=True, slots=True)
class Recording:
    """A recorded run.

    Args:
        format: name of the format.
        ranks: ranks, in order of number.
        left: omitted events.
        zero: time 0 in seconds since 1970; 0 if unknown.
        notes: assumptions of the reader, in sentences.
        clocked: whether the files have start times, so that starts on two ranks can be compared.
    """

    format: str
    ranks: tuple[Rank, ...]
    left: tuple[OmittedEvents, ...] = ()
    zero: float = 0.0
    notes: tuple[str, ...] = ()
    clocked: bool = True
