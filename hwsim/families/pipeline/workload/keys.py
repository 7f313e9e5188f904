"""Keys of `pipeline:`: stages, dataset, cache and checkpoints."""

from __future__ import annotations

from hwsim.records import dataclass
from hwsim.spec import Place, Tree, field, place_field
from hwsim.units import Bytes, Seconds
from hwsim.workload.checkpoint import CheckpointWriteKeys


@dataclass(frozen=True, slots=True)
class Dataset:
    """The dataset that the stages read; it sets the defaults of the ops `read`."""

    samples: int = field("number of samples", minimum=1, example="1281167")
    bytes: Bytes = field("average size of a sample", exclusive_minimum=0.0, example="110 kB")
    shuffle: bool = field("a new random order in each epoch, read by random access (false: sequential)", default=True)


@dataclass(frozen=True, slots=True)
class Cache:
    """A cache of the samples read, which behaves like the page cache of Linux."""

    device: str = field("device whose memory holds the cache (default: host of the program)", default="")
    bytes: Bytes | None = field("capacity of the cache (default: the entire memory)", default=None, minimum=0.0, example="64 GB")


@dataclass(frozen=True, slots=True, kw_only=True)
class Checkpoint(CheckpointWriteKeys):
    """Periodic checkpoints after batches of the last stage; of several pipelines, the first writes them."""

    every: Tree = field("interval: 1000 (batches), 30 min (the batches that the slowest stage processes in it), or epoch")
    bytes: Bytes = field("size of a checkpoint", exclusive_minimum=0.0, example="1.3 GB")
    target: str = field("disk to write to", key="to", example="disk")
    source: str = field("device whose memory holds the state (default: device of the last stage)", key="from", default="")
    place: Place = place_field()


@dataclass(frozen=True, slots=True)
class StageKeys:
    """Keys of a stage in addition to its op."""

    name: str = field("name in the results (default: name of its op)", default="")
    ahead: int | None = field(
        "maximum finished batches that wait for the next stage (default: `ahead` of the pipeline)",
        default=None,
        minimum=0,
        example="8",
    )
    at_once: int = field("number of workers, which take batches in turn, one at a time", default=1, minimum=1)
    handoff: Seconds = field("host time to take a batch from a worker, in sequence", default=0.0, example="300 us")
    do: tuple[Tree, ...] = field("several ops, executed in sequence for each batch", default=(), one_or_many=True)
    train: Tree | None = field("a training, instead of an op: one step per batch", default=None)


@dataclass(frozen=True, slots=True)
class StagesKeys:
    """Stages through which batches pass."""

    stages: tuple[Tree, ...] = field("ops, one per stage, in the order in which a batch passes through them")
    ahead: int = field("maximum number of finished batches that wait between two stages", default=1, minimum=0)
    dataset: Dataset | None = field("dataset that the stages read", default=None)
    cache: Cache | None = field("cache that serves reads in later epochs (default: none)", default=None)
    each: tuple[str, ...] = field("devices or nodes with one pipeline each", default=(), one_or_many=True, example="node*")
    place: Place = place_field()


@dataclass(frozen=True, slots=True)
class LoaderKeys(StagesKeys):
    """Stages that prepare the batch of each step of a training; a batch has the samples of one step of its GPUs."""

    epoch: int = field("epoch of the simulated steps: from the second on, `cache` serves reads", default=1, minimum=1)


@dataclass(frozen=True, slots=True)
class PipelineKeys(StagesKeys):
    """Stages that run concurrently, each on a different batch."""

    batches: int | None = field(
        "batches per epoch (default: number of full batches in the dataset)", default=None, minimum=0, example="1000"
    )
    batch: int | None = field("samples per batch", default=None, minimum=1, example="64")
    epochs: int = field("number of epochs", default=1, minimum=0)
    checkpoint: Checkpoint | None = field("periodic checkpoints (default: none)", default=None)


def as_pipeline(keys: LoaderKeys, batch: int) -> PipelineKeys:
    """Return a loader as a pipeline of batches of `batch` samples, up to the epoch of the simulated steps."""
    shared = {name: getattr(keys, name) for name in ("stages", "ahead", "dataset", "cache", "each", "place")}
    return PipelineKeys(**shared, batch=batch, epochs=keys.epoch)
