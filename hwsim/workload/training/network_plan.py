"""How a network is trained: its batch over copies, stages and splits, and how gradients are put together.

    train:
      model: resnet-50
      global_batch: 512
      parallel: {dp: rest}
      synchronise: {by: parameter-server, server: cpu}

Of `parallel`, `dp` copies of the network work on parts of the batch, `pp` GPUs have the next layers each, and `tp` GPUs
share the channels (or units) of every layer.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Final, Literal

from hwsim.models.architectures import Network
from hwsim.models.architectures.split import CannotSplit, blocks, split
from hwsim.models.framework import SOFTWARE, Software
from hwsim.models.plan import Dtype, Schedule
from hwsim.models.step import BUCKET
from hwsim.records import dataclass
from hwsim.spec import Place, Tree, did_you_mean, field, place_field, tree_field
from hwsim.units import Bytes

SOFTWARE_OF_NETWORKS: Final = "pytorch-ngc"  # unless the file says another one
# What belongs to transformers alone: (key, what a network has in its place).
FOREIGN: Final = ("sequence", "sequence_parallel", "chunks", "uneven", "sharding", "shards", "recompute", "tokens", "detail")


@dataclass(frozen=True, slots=True, kw_only=True)
class SynchroniseKeys:
    """How the copies of a network put their gradients together."""

    by: Literal["all-reduce", "parameter-server"] = field(
        "who adds them up: the copies themselves, or servers", default="all-reduce"
    )
    algorithm: Tree | None = tree_field(
        "of the all-reduce, as the op has it (default: as the machine's library chooses)", default=None
    )
    server: tuple[str, ...] = field("devices that keep the parameters, each its part of every array; copies or others",
                                    default=("cpu",), one_or_many=True, example="server*")  # fmt: skip
    asynchronous: bool = field("every copy pushes and pulls on its own, and waits for no other", default=False)
    overlap: bool = field("gradients go off while the backward pass goes on", default=True)
    bucket: Bytes = field("gradients that are sent together", default=float(BUCKET), exclusive_minimum=0.0)
    place: Place = place_field()


@dataclass(frozen=True, slots=True, kw_only=True)
class EvaluateKeys:
    """A pass over other examples after the steps, forward only."""

    samples: int = field("examples", minimum=1)
    batch: int | None = field("examples at once, of all devices (default: that of training)", default=None, minimum=1)
    device: tuple[str, ...] = field("where (default: as the training)", default=(), one_or_many=True)
    place: Place = place_field()


@dataclass(frozen=True, slots=True, kw_only=True)
class NetworkPlan:
    """A network's training with every number known.

    batches: examples of a step, of each copy.  microbatches: parts of it that follow each other.
    """

    network: Network
    software: Software
    dtype: Dtype
    batches: tuple[int, ...]
    microbatches: int = 1
    pp: int = 1
    tp: int = 1
    schedule: Schedule = "1f1b"
    optimizer: str = "sgd"
    one_thread: bool = False
    steps: int = 1
    by: Literal["all-reduce", "parameter-server"] = "all-reduce"
    algorithm: Tree | None = None
    servers: tuple[str, ...] = ()
    asynchronous: bool = False
    overlap: bool = True
    bucket: float = BUCKET

    @property
    def dp(self) -> int:
        return len(self.batches)

    def at(self, copy: int, stage: int, part: int) -> int:
        """Which of the devices: the GPUs of a split are neighbours, then those of the stages."""
        return part + self.tp * (stage + self.pp * copy)


def software_of(tree: Tree, said: str) -> Software | str:
    """The framework that a training says, or what is wrong."""
    name = said if tree.get("framework") is not None else SOFTWARE_OF_NETWORKS
    found = SOFTWARE.get(name)
    return found or f"no framework '{name}' trains networks; {did_you_mean(name, SOFTWARE) or 'one of ' + ', '.join(SOFTWARE)}"


def shared(batch: int, copies: int, shares: tuple[float, ...]) -> tuple[int, ...] | str:
    """Examples of each copy, or what is wrong.

    >>> shared(256, 4, ()), shared(100, 2, (3.0, 1.0))
    ((64, 64, 64, 64), (75, 25))
    >>> shared(256, 3, ())
    'a batch of 256 cannot be split evenly over 3 copies'
    """
    if not shares:
        even = batch % copies == 0
        return (batch // copies,) * copies if even else f"a batch of {batch} cannot be split evenly over {copies} copies"
    if len(shares) != copies:
        return f"{len(shares)} shares for {copies} copies"
    if math.fsum(shares) <= 0:
        return "shares that are all zero"
    parts = [batch * each / math.fsum(shares) for each in shares]
    found = [int(each) for each in parts]
    order = sorted(range(copies), key=lambda at: (found[at] - parts[at], at))
    for at in order[: batch - sum(found)]:  # whole numbers that are left, to those who miss most
        found[at] += 1
    if 0 in found:
        return f"copy {found.index(0)} gets none of the {batch} examples"
    return tuple(found)


def fitting(tp: int, pp: int, dp: int, gpus: int) -> Iterator[str]:
    """A line if the parts of a plan do not come to the GPUs there are."""
    if tp > 1 and pp > 1:
        yield "a network is cut into stages or its layers are split, not both: tp 1 or pp 1"
    elif tp * pp * dp != gpus:
        yield f"tp {tp} x pp {pp} x dp {dp} = {tp * pp * dp} GPUs, but there are {gpus}"


def problems(plan: NetworkPlan) -> Iterator[tuple[str, str]]:
    """(key, message) of every constraint that a plan breaks."""
    units = plan.network.chain()
    count = len(blocks(units))
    if plan.pp > count:
        yield "parallel", f"pp {plan.pp} stages, but the network has only {count} blocks to cut between"
    try:
        split(units, plan.tp)
    except CannotSplit as error:
        yield "parallel", str(error)
    wrong = [each for each in plan.batches if each % plan.microbatches]
    if wrong:
        yield "microbatch", f"a copy's {wrong[0]} examples cannot be split evenly into {plan.microbatches} parts"
    if plan.schedule == "interleaved":
        yield "schedule", "stages of a network are not interleaved: 1f1b or gpipe"
    if plan.asynchronous and plan.by == "all-reduce":
        yield "synchronise", "an all-reduce waits for everybody: `asynchronous` needs `by: parameter-server`"
    if plan.asynchronous and plan.pp * plan.tp > 1:
        yield "synchronise", "asynchronous copies have one GPU each"
