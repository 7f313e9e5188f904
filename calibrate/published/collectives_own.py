"""All-reduces of TensorRT-LLM, vLLM and SGLang by custom kernels in CUDA graphs, on nine machines.

Alternate sizes of each curve are used for fitting (`machines/parts/own`): at most five constants per framework and link
generation.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Final

import numpy as np

from hwsim.communication import ALGORITHMS, timing
from hwsim.machine.libraries.custom_allreduce import AllReduceKernels
from hwsim.origins import Case
from published.collective_protocols import GENERATIONS
from published.collectives import Row, bus_of, devices_of, halved, machine_of
from published.collectives_serving import SYSTEMS
from published.parts import declared, table
from published.residual import Residual, of_miss
from published.score import Miss, Score, scored
from published.search import Floats, least_squares

FRAMEWORKS: Final = {"TRTLLM": "trtllm", "vLLM_custom_graph": "vllm", "SGLang_CustomAllReduce_graph": "sglang"}
LIMITS: Final[Mapping[tuple[str, str], tuple[float, float, int]]] = {
    (framework, link): (reads, largest, ranks) for framework, link, reads, largest, ranks in declared("collectives_own")["limits"]
}
# Minimum ranks for two steps: on Blackwell, vLLM reduces in the switch (symmetric memory, multimem) for six and eight ranks.
# **Source**: vllm-project/vllm: vllm/distributed/device_communicators/symm_mem.py (recalled); TensorRT-LLM's by its times.
TWO_FROM: Final[Mapping[tuple[str, str], int]] = {("vllm", "nvlink5"): 6, ("trtllm", "nvlink5"): 6}
GUESS: Final = (4e-6, 0.1e-6, 0.7, 4e-6, 0.8)


def rows(data: Path) -> list[Row]:
    """Return rows of kernels launched by a graph; for kernels launched by the host, the time is that of the host."""
    out = []
    for said in table(data / "validation" / "serving" / "aic_custom_allreduce.csv"):
        if (framework := FRAMEWORKS.get(said["kernel_source"])) is not None:
            size, name = 2 * float(said["message_size"]), SYSTEMS[said["system"]]
            ranks, seconds = int(said["num_gpus"]), 1e-3 * float(said["latency_ms"])
            out.append(Row(framework, f"{framework}, {name}", name, "all-reduce", ranks, 1, size, seconds, even=False))
    return halved(out)


def own(row: Row) -> bool:
    """Return whether the framework uses its custom kernels for this row."""
    return covered(row, GENERATIONS[row.machine])


def covered(row: Row, link: str) -> bool:
    """Return whether the framework would use its custom kernels on these links."""
    limits = LIMITS.get((row.id, link))
    if limits is None:
        return False
    reads, largest, ranks = limits
    if row.ranks > ranks or (largest and row.size > largest):
        return False
    two_steps = largest > 0 and row.ranks >= TWO_FROM.get((row.id, link), 2)
    return two_steps or not reads or (row.ranks - 1) * row.size <= reads


def kernels(values: Sequence[float], framework: str, link: str) -> AllReduceKernels:
    """Return the custom kernels with these constants."""
    start, peer, one, sync, two = values
    reads, largest, ranks = LIMITS[framework, link]
    return AllReduceKernels(
        start=start, peer=peer, one=min(one, 1.0), sync=sync, two=min(two, 1.0) if largest else 0.0, reads=reads, largest=largest,
        ranks=ranks, two_from=TWO_FROM.get((framework, link), 2),
    )  # fmt: skip


def seconds(row: Row, mine: AllReduceKernels) -> float:
    """Return the time of the custom kernels, in seconds."""
    way = mine.time(row.ranks, row.size, bus_of(row.machine, row.ranks, 1, "all-reduce").inside)
    return math.inf if way is None else way.latency + way.body


def fitted(several: Sequence[Row], framework: str, link: str) -> list[float]:
    """Return the best constants."""

    def errors(values: Floats) -> Floats:
        mine = kernels([guess * math.exp(value) for guess, value in zip(GUESS, values, strict=True)], framework, link)
        return np.array([*(math.log(seconds(row, mine) / row.seconds) for row in several), *(0.02 * values)])

    found = least_squares(errors, np.zeros(len(GUESS)))
    return [guess * math.exp(value) for guess, value in zip(GUESS, found, strict=True)]


def predicted(row: Row) -> float:
    """Return the time of a row by simulation of its machine."""
    machine = machine_of(row.machine)
    flows = timing.timed(machine, ALGORITHMS[row.id], "all-reduce", devices_of(row.machine, row.ranks, 1), row.size)
    return flows.alone(machine.rates())


def scores(data: Path) -> tuple[Score, ...]:
    """Return scores of held-out sizes (custom kernels, all sizes), and of held-out machines."""
    odd = [row for row in rows(data) if not row.even]
    wide = [row for row in odd if GENERATIONS[row.machine] != "pcie"]
    return (
        _score("custom all-reduce kernels on NVLink", [(row, predicted(row)) for row in wide if own(row)], 0.06),
        _score("all-reduce of serving frameworks on NVLink, any size", [(row, predicted(row)) for row in wide], 0.08),
        _score(
            "custom all-reduce kernels of two GPUs on PCIe",
            [(row, predicted(row)) for row in odd if own(row) and row not in wide],
            0.15,
        ),
        _score("custom all-reduce kernels, held-out machine", _left_out(data), 0.20),
    )


def residuals(data: Path) -> list[Residual]:
    """Return residuals of held-out sizes and of held-out machines."""
    found = [_residual(row, predicted(row), "known") for row in rows(data) if not row.even and own(row)]
    for row, value in _left_out(data):
        links = GENERATIONS[row.machine]
        twins = links != "pcie" and sum(generation == links for generation in GENERATIONS.values()) > 1
        found.append(_residual(row, value, "device" if twins else "generation"))
    return found


@cache
def _left_out(data: Path) -> list[tuple[Row, float]]:
    """Return every row with constants of other machines: those with the same links, else of the nearest generation."""
    mine = [row for row in rows(data) if own(row)]
    out = []
    for framework, name in dict.fromkeys((row.id, row.machine) for row in mine):
        link = GENERATIONS[name]
        others = [row for row in mine if row.id == framework and row.machine != name and row.even]
        near = [row for row in others if GENERATIONS[row.machine] == link]
        if not near:
            near = [row for row in others if GENERATIONS[row.machine][:2] == link[:2]]
        if near:
            near = [row for row in near if covered(row, link)]
            values = kernels(fitted(near, framework, link), framework, link)
            out += [(row, seconds(row, values)) for row in mine if (row.id, row.machine) == (framework, name)]
    return [(row, value) for row, value in out if math.isfinite(value)]


def _residual(row: Row, value: float, case: Case) -> Residual:
    return of_miss(
        Miss(f"{row.machine}: {row.said()}", value, row.seconds, row.group),
        "reduce",
        "own",
        case,
        unit=row.machine,
        work=f"{row.id}, {row.ranks} ranks, {row.size:g} B",
        device=row.machine,
    )


def _score(name: str, said: Sequence[tuple[Row, float]], bound: float) -> Score:
    misses = [Miss(f"{row.machine}: {row.said()}", value, row.seconds, row.group) for row, value in said]
    return scored(name, misses, bound, "cross-validated" if "held-out" in name else "interpolated")
