"""Copies between host and GPU, between GPUs, and inside a GPU.

Small tables in this module contain figures that are not in the data folder: loads by a core over PCIe, bidirectional copies,
and copies of AMD GPUs.
"""

from __future__ import annotations

import functools
import statistics
from collections.abc import Iterator
from pathlib import Path
from typing import Final, NamedTuple

from hwsim import api
from hwsim.machine import Machine, TransferOptions
from hwsim.origins import Case
from published.parts import declared, table
from published.residual import Residual, of_miss
from published.score import Miss, Score, held_out, scored

DEVICES: Final[dict[str, tuple[str, str]]] = declared("hostdev")["devices"]
REASONS: Final[dict[str, str]] = declared("hostdev")["reasons"]
LOADS: Final[dict[int, float]] = declared("hostdev")["loads"]


class Pair(NamedTuple):
    """Bandwidth of large copies on one host, in B/s: into the GPU, out of it, and in both directions together; and the link."""

    name: str
    into: float
    out: float
    both: float
    link: str = ""
    maker: str = "amd"


PAIRS: Final = tuple(Pair(**record) for record in declared("hostdev")["pairs"])
LARGE: Final = 1e6  # B of a copy with negligible setup time
AMD: Final = 512e6  # B of the largest copies of rocm-bandwidth-test
LEAST_INSIDE: Final = 15e6  # B: smaller copies inside a GPU are timer noise


@functools.cache
def machine(gpu: str, slot: str) -> Machine:
    """Return a host of two sockets with a GPU at the first; a V100 stands in for GPUs of newer PCIe generations."""
    return api.load_machine(
        "hwsim: machine/1\n"
        f"parts: {{cpu: {{kind: cpu, use: xeon-e5-2686v4, count: 2}}, gpu: {{kind: gpu, use: {gpu}, pcie: 6}}}}\n"
        "links:\n"
        "  - {between: [cpu0, cpu1], kind: qpi}\n"
        f"  - {{between: [cpu0, gpu], kind: pcie, use: {slot}}}\n"
    )


def seconds(row: dict[str, str]) -> float:
    """Return the predicted time of a row, in seconds."""
    of = machine(*DEVICES[row["hardware"]])
    size, direction = float(row["transfer_bytes"]), row["direction"]
    host = "cpu1" if "remote" in row["method"] else "cpu0"
    if direction == "h2d CPU store to BAR":  # time of the caller: its stores are posted, so it does not wait for their transfer
        return of.transfer(host, "gpu", size, TransferOptions(by="cpu")).demand.body(of.rates())
    ends = {"h2d": (host, "gpu"), "d2h": ("gpu", host), "d2d": ("gpu", "gpu")}[direction]
    return of.transfer(*ends, size).demand.alone(of.rates())


def measured(row: dict[str, str]) -> float:
    """Return the measured time of a row in seconds; copies inside a GPU are printed with reads plus writes."""
    value = float(row["value"])
    passes = 2 if row["direction"] == "d2d" else 1
    return value if row["metric"] == "time" else passes * float(row["transfer_bytes"]) / value


def rows(data: Path) -> list[dict[str, str]]:
    """Return the unflagged rows with a known size."""
    found = [row for row in table(data / "validation" / "04_hostdev.csv") if not row["flag"] and row["transfer_bytes"]]
    return [row for row in found if row["direction"] != "d2d" or float(row["transfer_bytes"]) >= LEAST_INSIDE]


def curves(data: Path) -> Iterator[tuple[str, list[dict[str, str]]]]:
    """Return the rows of each source and device, by name."""
    found: dict[str, list[dict[str, str]]] = {}
    for row in rows(data):
        found.setdefault(f"{row['source'].split('@')[0]} | {row['hardware']}", []).append(row)
    yield from sorted(found.items())


def scores(data: Path) -> tuple[Score, ...]:
    """Return scores of held-out sizes, and of devices with one or two sizes, predicted from their slot."""
    held, lone = [], []
    for name, group in curves(data):
        if len(group) >= 4:
            held += [_miss(row, name) for row in held_out(group, lambda row: float(row["transfer_bytes"]))]
        else:
            lone += [_miss(row, name) for row in group]
    loaded = [_loaded(size) for size in sorted(LOADS)[1::2]]
    at_once = [Miss(pair.name, times, pair.both / _one_way(pair), pair.name) for pair, times in _both_ways()]
    return (
        scored(
            "copies between host and GPU, and inside a GPU from 15 MB",
            held,
            0.04,
            "interpolated",
            why=_reason,
        ),
        scored(
            "copies of 32 MB, GPUs without fitted rows",
            lone,
            0.05,
            "not fitted",
            metric="median over all rows",
            why=_reason,
        ),
        scored(
            "reads of GPU memory by a CPU core over PCIe",
            loaded,
            0.10,
            "interpolated",
            metric="median over all rows",
            why=lambda miss: "the routine reads this size in two or four consecutive loads" * (miss.error > 0.2),
        ),
        scored(
            "bidirectional relative to one-way copy bandwidth, held-out host",
            at_once,
            0.10,
            "cross-validated",
            metric="median over all rows",
            why=lambda miss: "the copy engine favours its writes over its reads" * (miss.error > 0.15),
        ),
    )


def _loaded(size: int) -> Miss:
    of = machine("v100-sxm2-32gb", "pcie3-x16")
    took = of.transfer("gpu", "cpu0", float(size), TransferOptions(by="cpu")).demand.alone(of.rates())
    return Miss(f"{size} B", took, 1e-6 * LOADS[size], "gdrcopy | V100 SXM2")


def _one_way(pair: Pair) -> float:
    return (pair.into + pair.out) / 2


def _both_ways() -> Iterator[tuple[Pair, float]]:
    """Return (hosts, bidirectional over one-way bandwidth by the median of the other hosts)."""
    for pair in PAIRS:
        yield pair, statistics.median(other.both / _one_way(other) for other in PAIRS if other is not pair)


@functools.cache
def residuals(data: Path) -> list[Residual]:
    """Return residuals of held-out sizes, and of other hosts and GPUs with the constants of a slot."""
    found = []
    for name, group in curves(data):
        chosen = held_out(group, lambda row: float(row["transfer_bytes"])) if len(group) >= 4 else group
        case: Case = "known" if len(group) >= 4 else "device"
        for row in chosen:
            size = float(row["transfer_bytes"])
            work = f"{row['direction']} {size:g} B"
            device = DEVICES[row["hardware"]][0]
            regime = "large" if size >= LARGE else "small"
            # Two rows with unexplained bandwidth (remote socket's memory at 1 GB/s, half a slot) are scored only.
            if "remote" in row["method"] or "K80" in row["hardware"]:
                continue
            found.append(_residual(regime, case, device, name, row["id"], work, seconds(row), measured(row)))
    for size in sorted(LOADS)[1::2]:
        miss = _loaded(size)
        found.append(
            _residual("loads", "known", "v100-sxm2-32gb", miss.group, miss.row, f"loads {size} B", miss.predicted, miss.measured)
        )
    for pair, times in _both_ways():
        found.append(
            _residual("both", "device", pair.name, pair.name, "both ways", "both ways", 1 / times / _one_way(pair), 1 / pair.both)
        )
        if pair.link:
            of = machine("mi100" if pair.maker == "amd" else "v100-pcie-32gb", pair.link)
            for way, ends, rate in (("h2d", ("cpu0", "gpu"), pair.into), ("d2h", ("gpu", "cpu0"), pair.out)):
                took = of.transfer(*ends, AMD).demand.alone(of.rates())
                found.append(_residual("large", "device", pair.name, pair.name, way, f"{way} {AMD:g} B", took, AMD / rate))
    return found


def _residual(
    regime: str, case: Case, device: str, group: str, row: str, work: str, predicted: float, measured_s: float
) -> Residual:
    return of_miss(Miss(row, predicted, measured_s, group), "copy", regime, case, unit=device, work=work, device=device)


def _miss(row: dict[str, str], group: str) -> Miss:
    return Miss(f"{row['id']} {row['direction']} {float(row['transfer_bytes']):g} B", seconds(row), measured(row), group)


def _reason(miss: Miss) -> str:
    if "K80" in miss.group:
        return REASONS["K80"]
    if "P100" in miss.group and miss.error > 1:
        return REASONS["remote"]
    size = float(miss.row.split()[-2])
    if size <= 4e3 and "d2h" in miss.row:
        return REASONS["small"]
    if "gdrcopy" in miss.group:
        return "near the knee: write-combining buffers drain while the core continues"
    return ""
