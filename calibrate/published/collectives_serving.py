"""NCCL by generation of links: 2,350 collectives of nccl-tests on nine machines, with rows, operations and machines left out.

Even places of each curve's sizes are fitted to (`machines/parts/nccl`: a file a generation, two numbers a machine).
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from statistics import median
from typing import Final

from hwsim.machine.libraries.operations import Operation
from published.collectives import Row, halved
from published.parts import table

SYSTEMS: Final = {
    "a100_sxm": "hgx-a100", "h100_sxm": "hgx-h100", "h200_sxm": "hgx-h200", "b200_sxm": "hgx-b200", "b300_sxm": "hgx-b300",
    "gb200": "gb200-nvl72", "gb300": "gb300-nvl72", "l40s": "l40s-server", "rtx_pro_6000_server": "rtx-pro-6000-server",
}  # fmt: skip
OPERATIONS: Final[dict[str, Operation]] = {
    "all_reduce": "all-reduce", "all_gather": "all-gather", "reduce_scatter": "reduce-scatter", "alltoall": "all-to-all",
}  # fmt: skip
_BYTES: Final = {"half": 2, "int8": 1}  # `message_size` counts elements


def rows(data: Path) -> list[Row]:
    """One row a configuration: the median of its runs."""
    found: dict[tuple[str, str, str, int, float], list[float]] = {}
    for said in table(data / "validation" / "serving" / "aic_nccl.csv"):
        size = float(said["message_size"]) * _BYTES[said["nccl_dtype"]]
        key = said["system"], said["op_name"], said["nccl_dtype"], int(said["num_gpus"]), size
        found.setdefault(key, []).append(1e-3 * float(said["latency_ms"]))
    out = []
    for (system, name, dtype, ranks, size), times in found.items():
        operation = OPERATIONS[name]
        group = f"nccl-tests, {SYSTEMS[system]}, {operation}, {dtype}"
        label = f"{system} {name} {dtype}"
        out.append(Row(label, group, SYSTEMS[system], operation, ranks, 1, size, median(times), even=False))
    return halved(out)


def fit(data: Path) -> None:
    """Print the parts of the library: a generation of links each, and two numbers a machine."""
    from published.collective_protocols import GENERATIONS, fitted, pooled, prepared

    mine = [row for row in rows(data) if row.even and adds_in_switch(row)]
    for slotted in (False, True):
        found = fitted(prepared(row for row in mine if row.machine.endswith("server") == slotted))
        for name, numbers in found.generations.items():
            own = pooled([found.machines[each] for each in found.machines if slotted or GENERATIONS[each] == name])
            print(f"\n{name}.yaml\n{_said({**numbers, **own}, name)}")
        for name, numbers in found.machines.items():
            print(f"\n{name}.yaml\nuse: {GENERATIONS[name]}\n{_said(numbers, GENERATIONS[name])}")


def adds_in_switch(row: Row) -> bool:
    """Whether the row is what NCCL's tables say: switches add no integers, so that rings take over from sums in the switch."""
    return not ("int8" in row.id and row.operation == "all-reduce" and row.ranks == 8 and row.size >= 3 * 2**19)


def _said(numbers: Mapping[str, float], generation: str) -> str:
    """The keys of a part."""
    text: dict[str, list[str]] = {}
    for name, value in numbers.items():
        if name.startswith("nvls") and generation not in ("nvlink4", "nvlink5"):
            continue
        key, _, inner = name.partition(".")
        if key == "rate":
            key = "nvlink" if generation.startswith("nvlink") else "pcie"
        said = f"{value / 1e9:.3g} GB/s" if name == "sends.ll" else _number(key if not inner else inner, value)
        text.setdefault(key, []).append(f"{inner}: {said}" if inner else said)
    flags, chunks = ("kept: 100 %", "kept: 50 %") if generation.startswith("nvlink") else ("", "")
    extra = {"ll": ["rate: 50 %", flags], "ll128": [flags], "simple": [chunks], "sends": [chunks]}
    lines = []
    for key, parts in text.items():
        inside = [each for each in (*parts, *extra.get(key, ())) if each]
        lines.append(f"{key}: {{{', '.join(inside)}}}" if ": " in inside[0] else f"{key}: {inside[0]}")
    return "\n".join(lines)


def _number(key: str, value: float) -> str:
    if key in ("start", "step", "wide", "peer", "nvls_start"):
        return f"{1e6 * value:.3g} us"
    return f"{value:.3g}" if key == "nvls" else f"{min(100.0, 100 * value):.3g} %"
