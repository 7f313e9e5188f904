"""Keys of `train:`, the training of a model.

train:
  model: llama-3-70b
  global_batch: 1024
  parallel: {tp: 8, pp: 4, dp: rest}
  sharding: zero-1
"""

from __future__ import annotations

from typing import Literal

from hwsim.families.pipeline.workload.keys import LoaderKeys
from hwsim.models.plan import Dtype, Optimizer, Recompute, Schedule, Sharding, Sizes
from hwsim.models.step import BUCKET
from hwsim.records import dataclass
from hwsim.spec import Place, Tree, field, place_field
from hwsim.units import Bytes, BytesPerSecond, Ratio, Seconds
from hwsim.workload.checkpoint import CheckpointWriteKeys

Detail = Literal["auto", "stage", "layer"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ParallelKeys(Sizes):
    """Sizes of the parallel plan; `parallel: auto` tries plans by the estimate of their step."""

    place: Place = place_field()


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryKeys:
    """Copies of the model state in the memory of other nodes, made between two checkpoints."""

    survives: Ratio = field("share of failures that leave the copies intact", minimum=0.0, maximum=1.0, example="85 %")
    write: Seconds = field("pause of the training for each copy", example="2 s")
    load: Seconds = field("time to read a copy back after a failure", default=0.0)
    every: Seconds | Literal["auto"] = field("work between two copies; auto: highest goodput", default="auto")


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckpointKeys(CheckpointWriteKeys):
    """Periodic checkpoints of a training, each written after a step."""

    every: Tree = field("interval: number of steps, a time, epoch, or auto: highest goodput with `failures`", example="30 min")
    bytes: Bytes | Literal["auto"] = field(
        "size of a checkpoint; auto: weights and optimizer state, 14 B per parameter with Adam", default="auto"
    )
    target: str = field("disks to write to (default: the only file system of the machine)", key="to", default="")
    bandwidth: BytesPerSecond | None = field(
        "bandwidth of storage outside the machine, which nodes reach over their NICs; alternative to `to`",
        default=None,
        exclusive_minimum=0.0,
        example="2 TB/s",
    )
    write: Seconds | None = field("duration of a write; alternative to `to`", default=None, exclusive_minimum=0.0, example="60 s")
    snapshot: Seconds | None = field(
        "duration of the copy to host memory (default: from the link bandwidth)", default=None, example="2 s"
    )
    sharded: bool = field("every GPU writes a part (false: only GPUs of the first data-parallel replica)", default=True)
    memory: MemoryKeys | None = field("additional copies in the memory of other nodes (default: none)", default=None)
    place: Place = place_field()


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainKeys:
    """Training steps: the model, the devices, and the parallel plan."""

    model: Tree = field("name of a library model, path of a model file, or its dimensions", example="llama-3-70b")
    device: tuple[str, ...] = field("devices to train on (default: all GPUs)", default=(), one_or_many=True, example="gpu0..3")
    gpus: int | None = field("number of these devices to use, from the first (default: all)", default=None, minimum=1)
    global_batch: int = field("sequences (or images) per step, summed over all replicas", minimum=1)
    microbatch: int = field("sequences (or images) per microbatch of one replica", default=1, minimum=1)
    sequence: int | None = field("tokens per sequence (default: the maximum of the model)", default=None, minimum=1)
    dtype: Dtype | None = field(
        "number format of activations and matmuls (default: bf16 if the GPU has it, else fp16; CNN or MLP: fp32)", default=None
    )
    parallel: Tree | None = field(
        "parallel plan: {tp, pp, dp, cp, ep, order}, or auto (default: dp)", default=None, example="{tp: 8, pp: 4, dp: rest}"
    )
    imbalance: float = field(
        "load imbalance: tokens of the most loaded GPU of an expert-parallel group (`ep`) over the average; the other GPUs "
        "wait for it",
        default=1.0,
        minimum=1.0,
        example="1.3",
    )
    sequence_parallel: bool | None = field("split norms and residuals over the tp GPUs (default: if tp > 1)", default=None)
    schedule: Schedule = field("pipeline schedule: order of forward and backward passes", default="1f1b")
    chunks: int = field("virtual stages per pipeline stage, for `schedule: interleaved`", default=1, minimum=1)
    uneven: bool = field("stages may differ by one layer; embedding and output count as one layer each", default=False)
    optimizer: Optimizer = field("optimizer that updates the weights (CNN or MLP: sgd)", default="adam")
    sharding: Sharding = field("state split over replicas: optimizer (1), gradients (2), weights (3, fsdp)", default="none")
    shards: int | None = field("replicas over which one set of sharded state is split (default: all)", default=None, minimum=1)
    recompute: Recompute = field("recomputed activations: none, attention scores (selective), layers (full)", default="none")
    framework: str = field(
        "training framework whose kernels and overlap are modelled (CNN or MLP: pytorch-ngc)", default="megatron-core"
    )
    buckets: int | None = field(
        "gradient buckets per backward pass (default: one per layer, at most 16; CNN or MLP: by size)", default=None, minimum=1
    )
    synchronise: Tree | None = field(
        "gradient exchange of a CNN or MLP: all-reduce, parameter-server, or a mapping with more keys",
        default=None,
        example="{by: parameter-server, server: cpu}",
    )
    threads: Literal["one", "each"] = field(
        "host threads that launch the kernels of a CNN or MLP: one per host, or one per GPU (each)", default="each"
    )
    steps: int = field("number of simulated steps (default with `loader`: 16 or more)", default=2, minimum=1)
    loader: LoaderKeys | None = field(
        "data loader: stages that prepare the batch of each step (default: batches are in GPU memory)", default=None
    )
    tokens: float | None = field(
        "tokens of the entire training; adds its days to the results", default=None, exclusive_minimum=0.0, example="15e12"
    )
    epochs: float | None = field("epochs of the entire training; requires `samples`", default=None, exclusive_minimum=0.0)
    samples: float | None = field("sequences (or images) per epoch", default=None, exclusive_minimum=0.0)
    checkpoint: CheckpointKeys | None = field("periodic checkpoints (default: none)", default=None)
    failures: Tree | None = field(
        "failure rates: a library name, a file, or a mapping; adds goodput and days", default=None, example="meta-llama-3"
    )
    detail: Detail = field(
        "ops per microbatch pass: one per stage, or several per layer; auto: per layer up to 10,000 ops a step", default="auto"
    )
    place: Place = place_field()


@dataclass(frozen=True, slots=True, kw_only=True)
class SynchroniseKeys:
    """Exchange of gradients among the replicas of a CNN or MLP."""

    by: Literal["all-reduce", "parameter-server"] = field("summation of gradients, by replicas or servers", default="all-reduce")
    algorithm: Tree | None = field(
        "algorithm of the all-reduce, as for the op (default: chosen by the communication library)", default=None
    )
    server: tuple[str, ...] = field("devices that hold the parameters, each a part of every array; may be replicas",
                                    default=("cpu",), one_or_many=True, example="server*")  # fmt: skip
    overlap: bool = field("overlap the exchange with the backward pass", default=True)
    bucket: Bytes = field("size of a gradient bucket, which is sent at once", default=float(BUCKET), exclusive_minimum=0.0)
    place: Place = place_field()
