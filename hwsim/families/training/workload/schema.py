"""`train:` the training of a model, as a file says it.

train:
  model: llama-3-70b
  global_batch: 1024
  parallel: {tp: 8, pp: 4, dp: rest}
  sharding: zero-1
"""

from __future__ import annotations

from typing import Literal

from hwsim.models.plan import Dtype, Optimizer, Recompute, Schedule, Sharding, Sizes
from hwsim.models.step import BUCKET
from hwsim.records import dataclass
from hwsim.spec import Place, Tree, field, place_field
from hwsim.units import Bytes, BytesPerSecond, Ratio, Seconds
from hwsim.workload.checkpoint import Writing

Detail = Literal["auto", "stage", "layer"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ParallelKeys(Sizes):
    """Sizes of the parallel plan; `parallel: auto` tries plans by the estimate of their step."""

    place: Place = place_field()


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryKeys:
    """Copies of the state in the memory of other nodes, between two checkpoints."""

    survives: Ratio = field("part of the failures that leaves them whole", minimum=0.0, maximum=1.0, example="85 %")
    write: Seconds = field("a copy stops the training so long", example="2 s")
    load: Seconds = field("until a copy is read back", default=0.0)
    every: Seconds | Literal["auto"] = field("work between two of them", default="auto")


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckpointKeys(Writing):
    """The state of a training, written now and then after a step."""

    every: Tree = field("steps, a time, or auto: where, with its `failures`, it gets on fastest", example="30 min")
    bytes: Bytes | Literal["auto"] = field(
        "how much is written; auto: weights and what the optimizer keeps, 14 B a parameter with Adam", default="auto"
    )
    target: str = field("the disk or disks (default: the only file system of the machine)", key="to", default="")
    bandwidth: BytesPerSecond | None = field(
        "instead of `to`: of storage outside of the machine, which nodes reach over their network cards",
        default=None,
        exclusive_minimum=0.0,
        example="2 TB/s",
    )
    write: Seconds | None = field("instead of `to`: what a write takes", default=None, exclusive_minimum=0.0, example="60 s")
    snapshot: Seconds | None = field(
        "the copy to the host's memory (default: by the links between them)", default=None, example="2 s"
    )
    sharded: bool = field("every GPU writes a part (else only those of the first data-parallel replica)", default=True)
    memory: MemoryKeys | None = field("copies in the memory of other nodes as well (default: none)", default=None)
    place: Place = place_field()


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainKeys:
    """Steps of training: what is trained, on which devices, and how it is split over them."""

    model: Tree = field("a model of the library or of a file, or its dimensions", example="llama-3-70b")
    device: tuple[str, ...] = field("what it is trained on (default: all GPUs)", default=(), one_or_many=True, example="gpu0..3")
    gpus: int | None = field("of these, the first so many (default: all)", default=None, minimum=1)
    global_batch: int = field("sequences (or images) of a step, of all copies", minimum=1)
    microbatch: int = field("of these, how many pass the network at once, of each copy", default=1, minimum=1)
    sequence: int | None = field("tokens of a sequence; the model's longest if left out", default=None, minimum=1)
    dtype: Dtype | None = field(
        "number format of activations and products (default: bf16 where the gpu has it, else fp16)", default=None
    )
    parallel: Tree | None = field(
        "how it is laid over the devices: {tp, pp, dp, cp, ep, order}, or auto", default=None, example="{tp: 8, pp: 4, dp: rest}"
    )
    imbalance: float = field(
        "tokens of the fullest of the GPUs that split the experts (`ep`), over their mean; the others wait for it",
        default=1.0,
        minimum=1.0,
        example="1.3",
    )
    sequence_parallel: bool | None = field("norms and residuals are split as the matrices are (default: with tp)", default=None)
    schedule: Schedule = field("order of forward and backward in a pipeline", default="1f1b")
    chunks: int = field("pieces of a stage that an interleaved schedule has", default=1, minimum=1)
    uneven: bool = field("stages may differ by a layer, of which the embedding and the output count as one", default=False)
    optimizer: Optimizer = field("what the weights are updated by", default="adam")
    sharding: Sharding = field("what the copies hold parts of: optimizer (1), gradients (2), weights (3)", default="none")
    shards: int | None = field("copies that share a set; all if left out", default=None, minimum=1)
    recompute: Recompute = field("what backward computes again: nothing, attention scores, or all of a layer", default="none")
    framework: str = field("whose kernels and overlaps", default="megatron-core")
    buckets: int | None = field(
        "pieces that gradients are exchanged in while backward goes on (default: one a layer)", default=None, minimum=1
    )
    synchronise: Tree | None = field(
        "how a network's gradients are put together: all-reduce, parameter-server, or a mapping that says more",
        default=None,
        example="{by: parameter-server, server: cpu}",
    )
    threads: Literal["one", "each"] = field(
        "who issues a network's kernels: one program for all GPUs, or one each", default="each"
    )
    steps: int = field("steps that are simulated", default=2, minimum=1)
    tokens: float | None = field("of the whole training: gives its days", default=None, exclusive_minimum=0.0, example="15e12")
    epochs: float | None = field("passes over `samples`: gives the days of them", default=None, exclusive_minimum=0.0)
    samples: float | None = field("sequences (or images) of an epoch", default=None, exclusive_minimum=0.0)
    checkpoint: CheckpointKeys | None = field("what is written now and then (default: nothing)", default=None)
    failures: Tree | None = field(
        "how often what fails: rates of the library or of a file, or a mapping; gives goodput and days",
        default=None,
        example="meta-llama-3",
    )
    detail: Detail = field(
        "ops of a micro-batch: one for each stage and direction, or several for each layer (auto: layers, if they are few)",
        default="auto",
    )
    place: Place = place_field()


@dataclass(frozen=True, slots=True, kw_only=True)
class SynchroniseKeys:
    """Exchange of gradients among the replicas of a network."""

    by: Literal["all-reduce", "parameter-server"] = field(
        "who adds them up: the copies themselves, or servers", default="all-reduce"
    )
    algorithm: Tree | None = field(
        "of the all-reduce, as the op has it (default: as the machine's library chooses)", default=None
    )
    server: tuple[str, ...] = field("devices that keep the parameters, each its part of every array; copies or others",
                                    default=("cpu",), one_or_many=True, example="server*")  # fmt: skip
    overlap: bool = field("gradients go off while the backward pass goes on", default=True)
    bucket: Bytes = field("gradients that are sent together", default=float(BUCKET), exclusive_minimum=0.0)
    place: Place = place_field()
