"""Published CNN trainings: network, machine and framework of each row."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Final

from hwsim import api
from hwsim.communication import ALGORITHMS
from hwsim.communication.timing import timed
from hwsim.machine import Machine
from hwsim.models.architectures import FeedForwardNetwork
from hwsim.models.library import load_network
from published.parts import declared, table

NETWORKS: Final[Mapping[str, str]] = declared("cnn_rows")["networks"]
GPUS: Final[Mapping[str, str]] = declared("cnn_rows")["gpus"]
MACHINES: Final[Mapping[str, str]] = declared("cnn_rows")["machines"]
# A machine that is not in the library: eight GPUs behind four PCIe switches of two sockets.
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
# Two fully connected quads, with a link between corresponding GPUs: NVIDIA DGX-1 With Tesla V100 System Architecture, WP-08437.
_QUADS: Final = tuple((a, b) for a in range(8) for b in range(a + 1, 8) if a // 4 == b // 4 or b == a + 4)
_MESH: Final = "".join(f"  - {{between: [gpu{a}, gpu{b}], kind: nvlink, use: nvlink1}}\n" for a, b in _QUADS)
BATCHES: Final[Mapping[tuple[str, str, str, str], int]] = {
    tuple(words): batch for *words, batch in declared("cnn_rows")["batches"]
}
UPDATES: Final[Mapping[str, str]] = {"parameter_server on GPU": "ps-sharded", "NCCL": "", "all-reduce": ""}


@dataclass(frozen=True, slots=True)
class Row:
    """One measured training; `exchange`: method of summing gradients, "" for NCCL's choice."""

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
        """Return a description of the row."""
        return f"{self.id}: {self.network} {self.dtype}, {self.gpus} x {self.batch}"


@cache
def rows(data: Path) -> tuple[Row, ...]:
    """Return the rows of networks that are in the library."""
    return tuple(
        _row(row)
        for row in table(data / "validation" / "08_cnn_train.csv")
        if row["flag"] == "" and last_of(NETWORKS, row["model"]) and not ("summed" in row["metric"] and row["count"] != "1")
    )


def last_of(known: Mapping[str, str], said: str) -> str:
    """Return the value of the last key contained in a text; "" without one."""
    return next((known[word] for word in reversed(list(known)) if word in said), "")


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
    """Return the method of summing gradients: on the CPU unless the row states another."""
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
    """Return a machine of the library, or the machine of 2017."""
    if name:
        return api.load_machine(name)
    return api.load_machine(_SWITCHED.format(gpu=gpu) + (_MESH if gpu == "p100-sxm2" else ""))


@cache
def exchange_of(name: str, gpu: str, gpus: int, way: str) -> Callable[[float], float] | None:
    """Return the time to sum gradients as a function of bytes; a CPU parameter server also serves a single GPU."""
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
def network_of(name: str) -> FeedForwardNetwork:
    """Return the network of the library with this name."""
    return load_network(name)
