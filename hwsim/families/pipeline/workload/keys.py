"""Keys of a `pipeline:`: its stages, its data, the memory that keeps them, its checkpoints."""

from __future__ import annotations

from hwsim.records import dataclass
from hwsim.spec import Place, Tree, field, place_field
from hwsim.units import Bytes, Seconds
from hwsim.workload.checkpoint import Writing


@dataclass(frozen=True, slots=True)
class Dataset:
    """Data that the reads of an epoch share; its numbers are the defaults of the ops `read`."""

    samples: int = field("how many samples", minimum=1, example="1281167")
    bytes: Bytes = field("bytes of one of them, on average", exclusive_minimum=0.0, example="110 kB")
    shuffle: bool = field("they are read in another order each epoch, anywhere on the disk", default=True)


@dataclass(frozen=True, slots=True)
class Cache:
    """Memory that keeps what was read, as the page cache of Linux does."""

    device: str = field("in whose memory (default: the program's host)", default="")
    bytes: Bytes | None = field("how much of it (default: all that memory)", default=None, minimum=0.0, example="64 GB")


@dataclass(frozen=True, slots=True, kw_only=True)
class Checkpoint(Writing):
    """The state of the model, written now and then after a batch of the last stage, of several pipelines' by the first."""

    every: Tree = field("batches, a time, or epoch: 1000, 30 min (as many batches as the slowest stage does in it)")
    bytes: Bytes = field("how much is written", exclusive_minimum=0.0, example="1.3 GB")
    target: str = field("the disk", key="to", example="disk")
    source: str = field("whose memory it is in (default: the device of the last stage)", key="from", default="")
    place: Place = place_field()


@dataclass(frozen=True, slots=True)
class StageKeys:
    """Keys of a stage in addition to its op."""

    name: str = field("what the results call it (default: its op)", default="")
    ahead: int | None = field(
        "batches it may have ready for the next stage (default: the pipeline's)", default=None, minimum=0, example="8"
    )
    at_once: int = field("batches in it at the same time, a worker for each, who take them in turns", default=1, minimum=1)
    handoff: Seconds = field("time of the host to take a batch over from it, one after another", default=0.0, example="300 us")
    do: tuple[Tree, ...] = field("several ops, one after another for each batch, instead of one", default=(), one_or_many=True)
    train: Tree | None = field("one step of a training, instead of an op", default=None)


@dataclass(frozen=True, slots=True)
class PipelineKeys:
    """Stages that run at the same time, each on a batch of its own."""

    stages: tuple[Tree, ...] = field("ops, in the order a batch meets them")
    batches: int | None = field(
        "batches that go through in an epoch (default: as many full ones as the dataset has)",
        default=None,
        minimum=0,
        example="1000",
    )
    batch: int | None = field("samples in a batch", default=None, minimum=1, example="64")
    epochs: int = field("times that all batches go through", default=1, minimum=0)
    ahead: int = field("batches that may lie ready between two stages", default=1, minimum=0)
    dataset: Dataset | None = field("what is read", default=None)
    cache: Cache | None = field("memory that keeps what was read for the next epoch (default: none)", default=None)
    checkpoint: Checkpoint | None = field("what is written now and then (default: nothing)", default=None)
    each: tuple[str, ...] = field("one pipeline per device or node of these", default=(), one_or_many=True, example="node*")
    place: Place = place_field()
