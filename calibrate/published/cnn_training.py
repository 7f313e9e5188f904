"""Training of networks of convolutions: tf_cnn_benchmarks of 2017, Gavel's cluster, NVIDIA's examples.

What libraries reach of a product (`hwsim.models.convolving`) and what frameworks add (`hwsim.models.cnn_software`) is fitted on
the even places of each network's sizes (GPUs, then batch) on a device; the odd places are scored.  Rows that are summed
over several workers are left out.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Final

from calibrate.published.parts import part, table
from calibrate.published.score import Half, Miss, Score, group_median, halves, worst_of
from calibrate.published.search import descend
from hwsim import api
from hwsim.collectives import ALGORITHMS
from hwsim.collectives.timing import timed
from hwsim.devices import Gpu, Work
from hwsim.machine import Machine
from hwsim.models.cnn_estimate import Exchange, Kernels, training_step
from hwsim.models.cnn_software import SOFTWARE, Software
from hwsim.models.convolving import CONVOLVING, Convolving, Units
from hwsim.models.networks import Network, load_network

# Words of a row's model: the network of the library.  The last that fits.
NETWORKS: Final[Mapping[str, str]] = {
    "InceptionV3": "inception-v3",
    "AlexNet": "alexnet-tf",
    "ResNet-50": "resnet-50",
    "v1.5": "resnet-50",
    "resnext101": "resnext-101-32x4d",
    "se-resnext101": "se-resnext-101-32x4d",
}
# Words of a row's hardware: the GPU.
GPUS: Final[Mapping[str, str]] = {
    "K80": "k80",
    "P100 16GB": "p100-pcie-16gb",
    "P100-SXM2": "p100-sxm2",
    "V100": "v100-sxm2-16gb",
    "V100-SXM2-32GB": "v100-sxm2-32gb",
    "V100-SXM3": "v100-sxm2-32gb",
    "A100-SXM4-80GB": "a100-sxm-80gb",
    "A100-SXM4-40GB": "a100-sxm-40gb",
    "T4": "t4",
}
MACHINES: Final[Mapping[str, str]] = {"V100": "p3.16xlarge", "DGX-2": "dgx-2", "DGX A100": "dgx-a100"}
# Machines of the rows that the library does not have: eight GPUs behind four PCIe switches of two sockets.
_SWITCHED: Final = """hwsim: machine/1
parts:
  cpu: {{kind: cpu, use: xeon-e5-2690v4, count: 2}}
  psw: {{kind: switch, use: pex8796, count: 4}}
  gpu: {{kind: gpu, use: {gpu}, count: 8}}
links:
  - {{between: [cpu0, cpu1], kind: qpi}}
  - {{between: [cpu*, psw*], per: 2, kind: pcie, use: pcie3-x16}}
  - {{between: [psw*, gpu*], per: 2, kind: pcie, use: pcie3-x16}}
"""
# Two quads with all their diagonals, each GPU linked to its like: NVIDIA DGX-1 With Tesla V100 System Architecture, WP-08437.
_QUADS: Final = tuple((a, b) for a in range(8) for b in range(a + 1, 8) if a // 4 == b // 4 or b == a + 4)
_MESH: Final = "".join(f"  - {{between: [gpu{a}, gpu{b}], kind: nvlink, use: nvlink1}}\n" for a, b in _QUADS)
# Batches that the rows leave out, by words of source, model and hardware, number format: NVIDIA DeepLearningExamples,
# MxNet/Classification/RN50v1.5/README.md and PyTorch/Classification/ConvNets/configs.yml.
BATCHES: Final[Mapping[tuple[str, str, str, str], int]] = {
    ("MxNet", "RN50", "A100", "tf32"): 256,
    ("MxNet", "RN50", "A100", "fp16"): 256,
    ("MxNet", "RN50", "DGX-1", "fp32"): 96,
    ("MxNet", "RN50", "DGX-1", "fp16"): 192,
    ("MxNet", "RN50", "DGX-2", "fp32"): 128,
    ("MxNet", "RN50", "DGX-2", "fp16"): 256,
    ("PyTorch", "resnet50", "A100", "tf32"): 256,
    ("PyTorch", "resnet50", "A100", "fp16"): 256,
    ("PyTorch", "resnet50", "V100", "fp32"): 112,
    ("PyTorch", "resnet50", "V100", "fp16"): 256,
    ("PyTorch", "resnext101", "A100", "tf32"): 128,
    ("PyTorch", "resnext101", "A100", "fp16"): 128,
    ("PyTorch", "resnext101", "V100", "fp32"): 64,
    ("PyTorch", "resnext101", "V100", "fp16"): 112,
}
UPDATES: Final[Mapping[str, str]] = {"parameter_server on GPU": "ps-sharded", "NCCL": "", "all-reduce": ""}
SCALE: Final = 0.08  # errors beyond this count less and less in the fit


@dataclass(frozen=True, slots=True)
class Row:
    """One measured training; `exchange`: how gradients are summed, "" as NCCL chooses."""

    id: str
    group: str
    network: str
    gpu: str
    machine: str
    software: str
    dtype: str
    gpus: int
    batch: int
    exchange: str
    images: float
    scored: bool

    @property
    def curve(self) -> tuple[str, str, str]:
        return self.group, self.network, self.dtype

    def said(self) -> str:
        """The row in words."""
        return f"{self.id}: {self.network} {self.dtype}, {self.gpus} x {self.batch}"


@cache
def rows(data: Path) -> tuple[Row, ...]:
    """Every row of a network that the library has."""
    return tuple(
        _row(each)
        for each in table(data / "validation" / "08_cnn_train.csv")
        if each["flag"] == "" and last_of(NETWORKS, each["model"]) and not ("summed" in each["metric"] and each["count"] != "1")
    )


def last_of(known: Mapping[str, str], said: str) -> str:
    """What the last of the words that a text has stands for; "" if it has none."""
    return next((known[word] for word in reversed(known) if word in said), "")


def _row(each: Mapping[str, str]) -> Row:
    source, hardware, precision = each["source"], each["hardware"], each["precision"]
    dtype = "fp16" if "mixed" in precision else precision
    network = last_of(NETWORKS, each["model"])
    old = "tensorflow/docs" in source
    batch = _batch(each, dtype)
    images = float(each["value"]) * (batch if each["metric"].startswith("steps") else 1.0)
    if old:
        software = "tensorflow-1"
    elif "gavel" in source:
        software = "pytorch-1"
    elif "MxNet" in source:
        software = "mxnet-ngc"
    elif "PyTorch" in source:
        software = "pytorch-ngc"
    else:
        software = "tensorflow-xla"
    return Row(
        id=each["id"].rpartition("-")[2],
        group=f"{source.partition('@')[0]} {hardware}",
        network="resnet-50-v1" if old and network == "resnet-50" else network,
        gpu=last_of(GPUS, hardware),
        machine="" if old else last_of(MACHINES, hardware),
        software=software,
        dtype=dtype,
        gpus=int(each["count"]),
        batch=batch,
        exchange=_way(each["update_method"]),
        images=images,
        scored=network != "alexnet-tf",
    )


def _way(said: str) -> str:
    """How gradients are summed: on the CPU unless the row says otherwise."""
    if "without NCCL" in said:
        return "ps-cpu"
    return next((way for word, way in UPDATES.items() if word in said), "ps-cpu")


def _batch(each: Mapping[str, str], dtype: str) -> int:
    numbers = [int(found) for found in re.findall(r"\d+", re.sub(r"(FP|TF)32", "", each["batch_per_gpu"]))]
    if numbers:
        return numbers[-1] if dtype == "fp16" else numbers[0]
    for (source, model, hardware, kind), batch in BATCHES.items():
        if source in each["source"] and model in each["model"] and hardware in each["hardware"] and kind == dtype:
            return batch
    raise ValueError(f"{each['id']} says no batch")


@cache
def machine_of(name: str, gpu: str) -> Machine:
    """The machine of the library, or the one of 2017."""
    if name:
        return api.load_machine(name)
    return api.load_machine(_SWITCHED.format(gpu=gpu) + (_MESH if gpu == "p100-sxm2" else ""))


@cache
def exchange_of(name: str, gpu: str, gpus: int, way: str) -> Exchange | None:
    """Seconds that so many bytes of gradients take; a parameter server on the CPU is met by a single GPU as well."""
    if gpus == 1 and way != "ps-cpu":
        return None
    machine = machine_of(name, gpu)
    devices = machine.devices_of("gpu")[:gpus]
    algorithm = ALGORITHMS[way] if way else None
    rates = machine.rates()

    @cache
    def seconds(size: float) -> float:
        return timed(machine, algorithm, "all-reduce", devices, size).alone(rates)

    return seconds


@cache
def network_of(name: str) -> Network:
    return load_network(name)


Constants = tuple[Mapping[Units, Convolving], Mapping[str, Software]]
ALL: Final[Constants] = (CONVOLVING, SOFTWARE)


def predicted(row: Row, kernels: Kernels | None = None) -> float:
    """Images a second of all its GPUs."""
    kernels = kernels or kernels_of(row.gpu, row.software)
    exchange = exchange_of(row.machine, row.gpu, row.gpus, row.exchange)
    return training_step(network_of(row.network), row.batch, row.dtype, kernels, row.gpus, exchange).images_per_second


@cache
def _known(gpu: str) -> dict[Work, float]:
    """Seconds of kernels on a GPU, which no constant changes."""
    return {}


def kernels_of(gpu: str, software: str, constants: Constants = ALL) -> Kernels:
    """A GPU under a framework."""
    return Kernels(part(Gpu, gpu), constants[1][software], constants[0], _known(gpu))


def parted(found: Sequence[Row]) -> tuple[list[Row], list[Row]]:
    """(to fit, to score): alternate sizes of each network on a device."""
    curves: dict[tuple[str, str, str], list[Row]] = {}
    for row in found:
        curves.setdefault(row.curve, []).append(row)
    fitted: list[Row] = []
    held: list[Row] = []
    for curve in curves.values():
        even, odd = halves(curve, size=lambda row: row.gpus * 10_000 + row.batch)
        fitted += even
        held += odd
    return fitted, held


def scores(data: Path) -> tuple[Score, ...]:
    """Held-out half, all rows, and AlexNet beside."""
    found = rows(data)
    scored = [row for row in found if row.scored]
    _, held = parted(scored)
    return (
        _score("steps not fitted to", held, 0.10, "held out"),
        _score("all steps", scored, 0.10, "all"),
        _score("AlexNet", [row for row in found if not row.scored], 0.20, "not fitted", 0.276),
    )


def reason(miss: Miss) -> str:
    """Why a row is far off."""
    if "alexnet" in miss.row:
        if "K80" in miss.group:
            return (
                "5 x 5 and 3 x 3 of many channels: the constant of Kepler's transformed convolutions is that of Inception's 3 x 3"
            )
        return "kernels for convolutions of many channels (FFT)" if miss.predicted < miss.measured else "images from files bind"
    if "se-res" in miss.row and miss.predicted > miss.measured:
        return "many small kernels, and convolutions in groups"
    if "P100" in miss.group and "gavel" in miss.group:
        return "rows of one curve differ by 10 % from a line in the batch"
    if "MxNet" in miss.group:
        return "norm, addition and activation fused more in 16 bit than in 32"
    return "one part of the peak for all convolutions of a GPU"


def _score(name: str, found: Sequence[Row], bound: float, half: Half, reached: float | None = None) -> Score:
    misses = [Miss(row.said(), predicted(row), row.images, row.group) for row in found]
    median, tail = group_median(misses)
    return Score(name=name, metric="group median", value=median, bound=bound, rows=len(misses), half=half, reached=reached,
                 worst=worst_of(misses, reason), notes=f"Mean of the groups' 90th percentiles {100 * tail:.0f} %.")  # fmt: skip


# ---- the fit ----

# What is fitted, where the fit starts, and what it is held near to.
FREE: Final[Mapping[str, float]] = {
    "kepler.part": 0.4,
    "kepler.transformed": 0.6,
    "vector.part": 0.75,
    "vector.transformed": 0.75,
    "volta.part": 0.75,
    "tf32.part": 0.8,
    "ampere.part": 0.75,
    "vector.direct": 0.3,
    "volta.direct": 0.3,
    "tf32.direct": 0.2,
    "ampere.direct": 0.3,
    "tensorflow-1.step": 5e-3,
    "pytorch-1.step": 30e-3,
    "pytorch-ngc.moved": 1.0,
    "mxnet-ngc.moved": 0.7,
    "tensorflow-xla.moved": 0.8,
    "tensorflow-1.array": 20e-6,
    "pytorch-ngc.array": 60e-6,
    "mxnet-ngc.array": 10e-6,
    "tensorflow-xla.array": 30e-6,
}


def fit(data: Path) -> None:
    """Print the constants."""
    fitted, _ = parted([row for row in rows(data) if row.scored])
    names, near = list(FREE), list(FREE.values())

    def error(at: Sequence[float]) -> float:
        constants = _with(dict(zip(names, at, strict=True)))
        losses: dict[str, list[float]] = {}
        known = {key: kernels_of(*key, constants) for key in {(row.gpu, row.software) for row in fitted}}
        for row in fitted:
            off = math.log(predicted(row, known[row.gpu, row.software]) / row.images)
            losses.setdefault(row.group, []).append(math.log1p((off / SCALE) ** 2))
        far = sum(math.log(value / typical) ** 2 for value, typical in zip(at, near, strict=True))
        return sum(sum(each) / len(each) for each in losses.values()) / len(losses) + 0.004 * far

    found = descend(error, near, rounds=8, finest=0.02)
    for name, value in zip(names, found, strict=True):
        print(name, float(f"{value:.3g}"))


def _with(values: Mapping[str, float]) -> Constants:
    """The constants with some of them changed."""
    convolving, software = dict(CONVOLVING), dict(SOFTWARE)
    for path, value in values.items():
        name, key = path.split(".")
        if name in convolving:
            convolving[name] = replace(convolving[name], **{key: min(value, 1.0)})  # type: ignore[index]
        else:
            software[name] = replace(software[name], **{key: value})
    return convolving, software
