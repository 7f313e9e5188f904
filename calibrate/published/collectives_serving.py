"""NCCL by link generation: 2,350 collectives of nccl-tests on nine machines, with cross-validation.

Alternate sizes of each curve are used for fitting (`machines/parts/nccl`: one file per generation, two constants per machine).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from statistics import median
from typing import Final

from hwsim.communication.measured import size_regime
from hwsim.machine.libraries.nccl import Nccl
from hwsim.machine.libraries.operations import Operation
from hwsim.origins import Case
from published.collective_protocols import GENERATIONS, Fitted, Prepared, fitted, left_out, prepared, seconds
from published.collectives import Row, halved, predicted
from published.parts import declared, table
from published.residual import Residual, of_miss
from published.score import Half, Miss, Score, scored

SYSTEMS: Final = declared("collectives_serving")["systems"]
OPERATIONS: Final[dict[str, Operation]] = {
    "all_reduce": "all-reduce", "all_gather": "all-gather", "reduce_scatter": "reduce-scatter", "alltoall": "all-to-all",
}  # fmt: skip
_LEFT_TO_NCCL: Final = ("TRTLLM", "SGLang_CustomAllReduce_graph")
_BYTES: Final = {"half": 2, "int8": 1}  # `message_size` counts elements


def rows(data: Path) -> list[Row]:
    """Return one row per configuration, the median of its runs, and the all-reduces that frameworks pass to NCCL."""
    found: dict[tuple[str, str, str, int, float], list[float]] = {}
    for said in table(data / "validation" / "serving" / "aic_nccl.csv"):
        size = float(said["message_size"]) * _BYTES[said["nccl_dtype"]]
        key = said["system"], said["op_name"], said["nccl_dtype"], int(said["num_gpus"]), size
        found.setdefault(key, []).append(1e-3 * float(said["latency_ms"]))
    for said in table(data / "validation" / "serving" / "aic_custom_allreduce.csv"):
        size, framework = 2 * float(said["message_size"]), said["kernel_source"]
        if framework in _LEFT_TO_NCCL and size >= 2**25 and "nvlink" in GENERATIONS[SYSTEMS[said["system"]]]:
            key = said["system"], "all_reduce", framework, int(said["num_gpus"]), size
            found.setdefault(key, []).append(1e-3 * float(said["latency_ms"]))
    out = []
    for (system, name, kind, ranks, size), times in found.items():
        operation = OPERATIONS[name]
        group = f"{'nccl-tests' if kind in _BYTES else 'frameworks'}, {SYSTEMS[system]}, {operation}, {kind}"
        out.append(Row(f"{system} {kind}", group, SYSTEMS[system], operation, ranks, 1, size, median(times), even=False))
    return halved(out)


def scores(data: Path) -> tuple[Score, ...]:
    """Return scores of held-out sizes, and with a number of ranks, an operation, a machine or a link generation held out."""
    everything = prepared(rows(data))
    odd = [one for one in everything if not one.row.even]
    wide = [one for one in everything if not _slotted(one)]
    begin = _fitted(wide)
    without_ranks = _without(wide, begin, lambda one: one.row.ranks)
    without_operation = _without(wide, begin, lambda one: one.row.operation)
    machines = {name: left_out(_fit_to(everything), name, _fitted_like(name, everything)) for name in GENERATIONS}
    unknown = {
        name: left_out(_fit_to(wide), name, begin, generation=True) for name in GENERATIONS if "nvlink" in GENERATIONS[name]
    }
    return (
        _score("NCCL on NVLink", [(one, None) for one in odd if not _slotted(one)], 0.06, "interpolated"),
        _score("NCCL on PCIe", [(one, None) for one in odd if _slotted(one)], 0.12, "interpolated"),
        _score("NCCL on NVLink, held-out number of ranks", without_ranks, 0.12, "cross-validated"),
        _score("NCCL on NVLink, held-out operation", without_operation, 0.12, "cross-validated"),
        _score(
            "NCCL on NVLink, held-out machine",
            [(one, machines[one.row.machine]) for one in wide],
            0.20,
            "cross-validated",
        ),
        _score(
            "NCCL on NVLink, held-out NVLink generation",
            [(one, unknown[one.row.machine]) for one in wide],
            0.20,
            "cross-validated",
            reached=0.21,
        ),
        _score(
            "NCCL on PCIe, held-out machine",
            [(one, machines[one.row.machine]) for one in everything if _slotted(one)],
            0.20,
            "cross-validated",
            reached=0.39,
        ),
    )


def residuals(data: Path) -> list[Residual]:
    """Return residuals of held-out sizes, machines and link generations."""
    everything = prepared(rows(data))
    wide = [one for one in everything if not _slotted(one)]
    found = [_residual(one, None, "known", one.row.machine) for one in everything if not one.row.even]
    for name, generation in GENERATIONS.items():
        library = left_out(_fit_to(everything), name, _fitted_like(name, everything))
        twins = generation.startswith("nvlink") and sum(other == generation for other in GENERATIONS.values()) > 1
        case: Case = "device" if twins else "generation"  # PCIe boards differ from each other
        found += [_residual(one, library, case, name) for one in everything if one.row.machine == name]
    begin = _fitted(wide)
    for name, generation in GENERATIONS.items():
        if generation in ("nvlink4", "nvlink5"):
            library = left_out(_fit_to(wide), name, begin, generation=True)
            found += [_residual(one, library, "generation", generation) for one in wide if one.row.machine == name]
    return found


def _residual(one: Prepared, library: Nccl | None, case: Case, unit: str) -> Residual:
    row = one.row
    work = f"{row.operation}, {row.ranks} ranks, {row.size:g} B"
    return of_miss(
        Miss(row.said(), _predicted(one, library), row.seconds, row.group),
        "pcie" if _slotted(one) else "nccl",
        size_regime(row.size),
        case,
        unit=unit,
        work=work,
        device=row.machine,
    )


def _predicted(one: Prepared, library: Nccl | None) -> float:
    """Return the time by a library model or, for None, by a simulation with the shipped constants."""
    return predicted(one.row) if library is None else seconds(one, library)


def _slotted(one: Prepared) -> bool:
    return one.row.machine.endswith("server")


def _fit_to(several: Sequence[Prepared]) -> list[Prepared]:
    return [one for one in several if one.row.even and adds_in_switch(one.row)]


@cache
def _of(slotted: bool, several: tuple[Prepared, ...]) -> Fitted:
    return fitted([one for one in several if _slotted(one) == slotted])


def _fitted(several: Sequence[Prepared]) -> Fitted:
    return _of(_slotted(several[0]), tuple(_fit_to(several)))


def _fitted_like(name: str, several: Sequence[Prepared]) -> Fitted:
    """Return the constants of all machines with the same kind of links."""
    return _fitted([one for one in several if _slotted(one) == name.endswith("server")])


def _without(several: Sequence[Prepared], begin: Fitted, key: Callable[[Prepared], object]) -> list[tuple[Prepared, Nccl | None]]:
    """Return every row with constants fitted without its key."""
    out: list[tuple[Prepared, Nccl | None]] = []
    for kind in dict.fromkeys(key(one) for one in several):
        found = fitted([one for one in _fit_to(several) if key(one) != kind], begin)
        out += [(one, found.library(one.row.machine)) for one in several if key(one) == kind]
    return out


def _score(
    name: str,
    said: Sequence[tuple[Prepared, Nccl | None]],
    bound: float,
    half: Half,
    *,
    reached: float | None = None,
) -> Score:
    misses = [Miss(one.row.said(), _predicted(one, library), one.row.seconds, one.row.group) for one, library in said]
    return scored(name, misses, bound, half, reached=reached)


def adds_in_switch(row: Row) -> bool:
    """Return whether NCCL's tables apply: switches cannot reduce integers, so rings replace in-switch reduction."""
    return not ("int8" in row.id and row.operation == "all-reduce" and row.ranks == 8 and row.size >= 3 * 2**19)
