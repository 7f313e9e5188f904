"""Training notebooks of *Dive into Deep Learning* on V100, with their printed rates: CNNs, RNNs, optimizers and GEMMs.

In the PyTorch notebooks, a timer starts after a batch is loaded and stops when its loss is on the host. The times exclude the
data loader, but include the copy of the batch from pageable memory. The GPU waits for this copy, and consecutive batches do not
overlap.

    one GPU     the training step of a container's framework, with the additional traffic of eager mode, + the copy
    two GPUs    `DataParallel`: one thread launches both replicas; creating them and summing their gradients takes the additional
                time that section 13.6 prints for two GPUs

The scored rows are not used for fitting. The traffic of eager frameworks, Keras's time per step and the overhead of a second
GPU are from other notebooks of the same builds (`published.eager_d2l`). The time of a second GPU's first batch is from an
unscored cell. The rate of a copy from resident pages is a guess.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

import hwsim
from hwsim.devices import Gpu, Work
from hwsim.models.architectures.cnn import Cnn
from hwsim.models.architectures.entries import Shape
from hwsim.models.framework import SOFTWARE, Software
from hwsim.models.kernel_times import KernelTimes
from hwsim.models.library import load_network
from hwsim.origins import Case
from published import eager_d2l as eager
from published.cnn_training import data_parallel_step
from published.parts import declared, part, table
from published.residual import Residual, of_miss
from published.score import Miss, Score, scored

GPU: Final = "v100-sxm2-16gb"
MACHINE: Final = "p3.16xlarge"
PAGEABLE: Final = 6e9  # B/s from resident pageable memory; a guess: half the bandwidth of PCIe 3.0
START: Final = 80 * 128 * (1 / 1062.4 - 1 / 1525.4)  # s: cell 15 of a notebook minus cell 17; same work, 80 batches of 128
FIRST: Final = "d2l-00187"  # the cell with this time
NORM_OPS: Final = 4 * (9 + 6 / 3)  # handwritten minus library batch norm: four layers, 9 ops with gradients, 6 without


@dataclass(frozen=True, slots=True)
class Notebook:
    """The training of a notebook: network of the library, image shape, and batch size over all GPUs."""

    network: str
    input: Shape
    batch: int
    norm: bool | None = None


NOTEBOOKS: Final[Mapping[str, Notebook]] = {
    "lenet": Notebook("lenet", (1, 28, 28), 256),
    "batch-norm": Notebook("lenet", (1, 28, 28), 256, norm=True),
    "googlenet": Notebook("googlenet", (1, 96, 96), 128),
    "resnet": Notebook("resnet-18", (1, 96, 96), 256),
    "image-augmentation": Notebook("d2l-resnet-18", (3, 32, 32), 256),
    "fine-tuning": Notebook("resnet-18", (3, 224, 224), 128),
}
# Without AlexNet and Network in Network: 11 x 11 convolutions are not modelled accurately (`cnn_training`).
OTHERS: Final[Mapping[str, Notebook]] = {
    "vgg": Notebook("d2l-vgg", (1, 224, 224), 128),
    "densenet": Notebook("d2l-densenet", (1, 96, 96), 256),
}
KINDS: Final[Mapping[str, str]] = declared("cnn_d2l")["kinds"]
WHY: Final[Mapping[str, str]] = declared("cnn_d2l")["why"]


def scores(data: Path) -> tuple[Score, ...]:
    """Return scores of all notebooks, and of each kind."""
    found = list(_misses(data))
    kinds = {kind: [miss for miss in found if KINDS[miss.group] == kind] for kind in KINDS.values()}
    return (_score("all notebooks", found), *(_score(kind, misses) for kind, misses in kinds.items()))


def residuals(data: Path) -> list[Residual]:
    """Return residuals with host times from other cells of the same build, and for PyTorch also from the other build only."""
    found = list(_residuals(data, "known", {}))
    swapped = {"pytorch 2022": ("pytorch 2023",), "pytorch 2023": ("pytorch 2022",)}
    return found + [residual for residual in _residuals(data, "source", swapped) if residual.unit in swapped]


def _residuals(data: Path, case: Case, builds: Mapping[str, tuple[str, ...]]) -> Iterator[Residual]:
    for row in table(data / "validation" / "10_d2l.csv"):
        seconds = _predicted(row, builds.get(_build(row), _framework(row)))
        if seconds is not None:
            name = _name(row)
            yield of_miss(
                Miss(_said(row), seconds, _measured(row), f"{name}, {_framework(row)[0].split()[0]}"),
                "step",
                "eager",
                case,
                unit=_build(row) if case == "source" else name,
                work=f"{name} {row['cell']}",
                device=GPU,
            )


def _misses(data: Path) -> Iterator[Miss]:
    for row in table(data / "validation" / "10_d2l.csv"):
        seconds = _predicted(row, _framework(row))
        if seconds is not None:
            yield Miss(_said(row), seconds, _measured(row), _name(row), WHY[_name(row)])


def _said(each: Mapping[str, str]) -> str:
    return f"{each['id']}: {_name(each)}, cell {each['cell']}, {each['software']}"


def _name(each: Mapping[str, str]) -> str:
    return each["notebook"].rpartition("/")[2].removesuffix(".ipynb")


def _build(each: Mapping[str, str]) -> str:
    return ("tensorflow" if "TensorFlow" in each["software"] else "pytorch") + (
        " 2022" if "10.1" in each["software"] else " 2023"
    )


def _framework(each: Mapping[str, str]) -> tuple[str, ...]:
    return eager.TENSORFLOW if "TensorFlow" in each["software"] else eager.PYTORCH


def _measured(each: Mapping[str, str]) -> float:
    """Return the time of one batch, of 20 batches for optimizers, or else of the whole cell, in seconds."""
    value = float(each["value"])
    if each["metric"] == "tokens_per_s":
        return eager.TOKENS / value
    return NOTEBOOKS[_name(each)].batch / value if each["metric"] == "examples_per_s" else value


# ---- time of each cell ----


def _predicted(each: Mapping[str, str], builds: tuple[str, ...]) -> float | None:
    """Return the predicted time as in `_measured`; None if the cell is not scored."""
    name, said, tensorflow = _name(each), each["workload"], "TensorFlow" in each["software"]
    if each["id"] == FIRST or name not in KINDS:
        return None
    host = eager.host_of(builds)
    match KINDS[name]:
        case "GEMMs":
            return _products() if "复制" not in each["notes"] and "opy" not in each["notes"] else None
        case "optimizers":
            rule = "yogi" if "def yogi" in said else name
            return host.optimizer(rule, tensorflow, by_hand="concise" not in said)
        case "recurrent networks":
            if name == "deep-rnn":
                return host.of_library("deep")
            if name == "rnn-scratch":
                return host.by_hand("rnn")
            return host.by_hand("lstm") if "vocab_size; num" in said else host.of_library("lstm")
        case _:
            notebook = NOTEBOOKS[name]
            if int(each["count"]) > 1:
                begun = START / 80 if name == "fine-tuning" and "finetune_net" in said else 0.0
                return _two(notebook, builds) + begun
            scratch = name == "batch-norm" and "batch_size = 1.0" in said
            each_op = SOFTWARE["tensorflow-ngc"].dispatch * 3 if tensorflow else host.op
            return _one(notebook, builds) + (NORM_OPS * each_op if scratch else 0.0)


@functools.cache
def _products() -> float:
    changed = {"gpu": "gpu0", "cpu": "cpu0", "n": 4000, "times": 50, "copy": 0}
    return hwsim.simulate(MACHINE, "d2l/copy-overlap", set=changed).makespan_s


@functools.cache
def software_of(builds: tuple[str, ...]) -> Software:
    """Return the framework with eager-mode traffic, or Keras's time per step, from the other notebooks."""
    base = SOFTWARE["tensorflow-ngc" if builds == eager.TENSORFLOW else "pytorch-ngc"]

    def wrong(moved: float) -> float:
        tried = replace(base, moved=moved)
        return math.fsum(
            abs(math.log(_step(book, tried) * eager.middle(builds, name) / book.batch)) for name, book in OTHERS.items()
        )

    found = replace(base, moved=min((index / 10 for index in range(6, 21)), key=wrong))
    if builds == eager.TENSORFLOW:
        lenet = NOTEBOOKS["lenet"]
        found = replace(found, step=found.step + lenet.batch / eager.middle(builds, "lenet") - _step(lenet, found))
    return found


def _one(notebook: Notebook, builds: tuple[str, ...]) -> float:
    return _step(notebook, software_of(builds))


def _two(notebook: Notebook, builds: tuple[str, ...]) -> float:
    """Return the time of a step on two GPUs of one process."""
    found = software_of(builds)
    return _step(notebook, replace(found, dispatch=2 * found.dispatch), 2) + eager.middle(builds, "second gpu")


@functools.cache
def _times(software: Software) -> KernelTimes:
    return KernelTimes(part(Gpu, GPU), software.kernels, known=_KNOWN)


_KNOWN: Final[dict[Work, float]] = {}  # cache of kernel times


def _step(notebook: Notebook, software: Software, gpus: int = 1) -> float:
    """Return the time of a step of one of several GPUs, and of the copy of all images, in seconds."""
    step = data_parallel_step(_network(notebook), notebook.batch // gpus, "fp32", _times(software), software)
    return step.seconds + 4.0 * notebook.batch * math.prod(notebook.input) / PAGEABLE


@functools.cache
def _network(notebook: Notebook) -> Cnn:
    network = load_network(notebook.network)
    assert isinstance(network, Cnn)
    return replace(network, input=notebook.input, norm=network.norm if notebook.norm is None else notebook.norm)


def _score(name: str, found: Sequence[Miss]) -> Score:
    return scored(name, found, 0.20, "not fitted")
