"""DRAM: closed form and request-level simulation against a reference simulator, and latency under load against a server.

Reference: Ramulator 2 (CMU-SAFARI/ramulator2@c5b1c3a), one channel, open rows, row hits first, all-bank refresh, 20,000
requests. Rows with writes among random reads are excluded, because the reference's in-order trace and write drain dominate
there. Latency under load: published results of Intel Memory Latency Checker on two Xeon Silver 4110 with twelve DDR4 modules at
2400 MT/s.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Final

from hwsim.devices import Memory
from hwsim.devices.dram import Dram
from hwsim.families.requests.dram import DramSimulation, addresses
from hwsim.families.requests.requests import columns, serve
from published.parts import part, table
from published.score import Miss, Score, mean_error, scored

STANDARDS: Final = {
    "DDR4-3200": "ddr4-3200",
    "DDR5-4800": "ddr5-4800",
    "HBM2-2000": "hbm2-2000",
    "HBM3-6400": "hbm3-6400",
    "GDDR6-14000": "gddr6-14000",
}
PLAYED: Final = 5000  # minimum requests of a row; more if these end before a few refreshes
REFRESHES: Final = 8
MOST_PLAYED: Final = 20_000  # as the reference


@dataclass(frozen=True, slots=True)
class Row:
    """One run of the reference, with its measured requests per second."""

    standard: str
    name: str
    banks: int
    hit: float
    regular: bool
    refresh: bool
    rate: float

    @property
    def dram(self) -> Dram:
        found = channel(self.standard)
        return found if self.refresh else replace(found, tRFC=0.0)


def channel(standard: str) -> Dram:
    """Return a channel as in the reference; for DDR5, one of the two sub-channels."""
    found = part(Memory, STANDARDS[standard]).dram
    if found is None:
        raise ValueError(f"{STANDARDS[standard]} does not say what it is made of")
    if standard.startswith("DDR5"):
        return replace(found, width=found.width // 2, pseudo_channels=1, queue=found.queue // 2)
    return found


def bank_rows(data: Path) -> list[Row]:
    """Return the sweeps over the number of banks, in which every request opens another row."""
    found = []
    for row in table(data / "oracles" / "ramulator_random_vs_banks.csv"):
        regular, refresh = row["mode"] == "roundrobin", row["refresh"] == "True"
        name = f"{row['std']}, {row['banks']} banks, {row['mode']}{'' if refresh else ', no refresh'}"
        rate = float(row["Mreq_s"]) * 1e6
        found.append(Row(row["std"], name, int(row["banks"]), float(row["row_hit_frac"]), regular, refresh, rate))
    return found


def hit_rows(data: Path) -> list[Row]:
    """Return the sweeps over the share of row hits."""
    found = []
    for row in table(data / "oracles" / "ramulator_rowhit_sweep.csv"):
        if row["read_frac"] != "1.0" or not row["row_hit_frac_measured"]:
            continue
        name = f"{row['std']}, {row['banks']} banks, {row['hit_target']} row hits"
        rate = float(row["GBps"]) * 1e9 / channel(row["std"]).access
        found.append(Row(row["std"], name, int(row["banks"]), float(row["row_hit_frac_measured"]), False, True, rate))
    return found


def formula(row: Row) -> float:
    """Return the rate of the closed form, in requests per second."""
    return row.dram.random_rate(row.banks, row.hit, regular=row.regular)


def simulated_rate(row: Row, spent: list[tuple[int, float]] | None = None) -> float:
    """Return the rate of the request-level simulation, in requests per second; appends (requests, CPU seconds) to `spent`."""
    dram = row.dram
    count = min(MOST_PLAYED, max(PLAYED, int(row.rate * REFRESHES * dram.tREFI)))
    served = columns(addresses(dram, count, banks=row.banks, row_hit=row.hit, regular=row.regular), int(dram.access))
    simulation = DramSimulation(dram)
    begin = time.process_time()
    serve(simulation, served)
    if spent is not None:
        spent.append((count, time.process_time() - begin))
    return count / served.end


def misses(rows: Sequence[Row], predict: Callable[[Row], float]) -> list[Miss]:
    """Return predictions and measurements in million requests per second."""
    return [Miss(row.name, predict(row) / 1e6, row.rate / 1e6, row.standard) for row in rows]


def streams(data: Path) -> list[Miss]:
    """Return the bandwidth of one long stream of reads or of a mix, in GB/s."""
    found = []
    for row in table(data / "oracles" / "ramulator_stream_peak.csv"):
        dram = channel(row["std"])
        dram = dram if row["refresh"] == "True" else replace(dram, tRFC=0.0)
        name = f"{row['std']}, {row['read_ratio']} % reads{'' if row['refresh'] == 'True' else ', no refresh'}"
        found.append(Miss(name, dram.stream(int(row["read_ratio"]) / 100) / 1e9, float(row["GBps"]), row["read_ratio"]))
    return found


def simulated_streams(data: Path) -> list[Miss]:
    """Return the simulated bandwidth of one long stream of reads or of a mix, in GB/s."""
    found = []
    for row in table(data / "oracles" / "ramulator_stream_peak.csv"):
        dram, share, draw = channel(row["std"]), int(row["read_ratio"]) / 100, random.Random(1)
        if row["refresh"] == "True":
            write = [draw.random() >= share for _ in range(MOST_PLAYED)]
            served = columns([line * int(dram.access) for line in range(MOST_PLAYED)], int(dram.access), write=write)
            serve(DramSimulation(dram), served)
            name = f"{row['std']}, {row['read_ratio']} % reads"
            found.append(Miss(name, MOST_PLAYED * dram.access / served.end / 1e9, float(row["GBps"])))
    return found


def idle(data: Path) -> list[Miss]:
    """Return the latency of dependent reads on an idle channel, in ns."""
    rows = table(data / "oracles" / "ramulator_latency_vs_load.csv")
    return [
        Miss(std, channel(std).latency() * 1e9, min(float(row["avg_probe_lat_ns"]) for row in rows if row["std"] == std))
        for std in STANDARDS
    ]


def loaded(data: Path) -> tuple[list[Miss], list[Miss]]:
    """Return (fitted, held-out) latencies under load in ns, at alternate points; the lowest is the idle latency."""
    rows = sorted(table(data / "oracles" / "mlc_xeon4110_loaded_latency.csv"), key=lambda row: float(row["MBps"]))
    most, least = float(rows[-1]["MBps"]), float(rows[0]["latency_ns"])
    ddr4 = part(Memory, "ddr4-2400").dram
    if ddr4 is None:
        raise ValueError("ddr4-2400 does not say what it is made of")
    machine = replace(ddr4, channels=12, controller=least * 1e-9 - ddr4.latency())
    found = []
    for row in rows:
        load = float(row["MBps"]) / most
        found.append(Miss(f"load {load:.0%}", machine.loaded_latency(load) * 1e9, float(row["latency_ns"]), "Xeon 4110"))
    return found[::2], found[1::2]


def scores(data: Path) -> tuple[Score, ...]:
    """Return scores of closed form and simulation against the reference, by sweep."""
    banks, hits, stream = bank_rows(data), hit_rows(data), streams(data)
    found = []
    for what, rows, mean, worst in (("bank sweeps", banks, 0.03, 0.20), ("row-hit sweeps", hits, 0.06, None)):
        by_formula = misses(rows, formula)
        for standard in STANDARDS:
            own = [miss for miss in by_formula if miss.group == standard]
            found.append(_score(f"closed form, {what}, {standard}", own, mean))
        if worst is not None:
            found.append(
                scored(
                    f"closed form, {what}",
                    by_formula,
                    worst,
                    metric="largest relative error",
                    why=lambda _: "two limits meet; the closed form takes their minimum",
                )
            )
    reads = [miss for miss in stream if miss.group == "100"]
    found.append(_score("closed form, streams of reads", reads, 0.01))
    for share, bound in (("67", 0.05), ("50", 0.05)):
        mixed = [miss for miss in stream if miss.group == share]
        found.append(_score(f"closed form, streams of {share} % reads", mixed, bound))
    found.append(_score("closed form, latency of dependent reads", idle(data), 0.08))
    spent: list[tuple[int, float]] = []
    simulated = misses([row for row in banks if row.refresh or row.regular], partial(simulated_rate, spent=spent))
    simulated_hits = misses(hits, partial(simulated_rate, spent=spent))
    for standard in STANDARDS:
        own = [miss for miss in (*simulated, *simulated_hits) if miss.group == standard]
        found.append(_score(f"request-level simulation, bank and row-hit sweeps, {standard}", own, 0.05))
    found.append(
        _score(
            "request-level simulation, streams of reads and of reads and writes",
            simulated_streams(data),
            0.05,
        )
    )
    both = [
        Miss(hit.row, closed.predicted, hit.predicted, hit.group)
        for hit, closed in zip(simulated_hits, misses(hits, formula), strict=True)
    ]
    found.append(_score("closed form against request-level simulation, row-hit sweeps", both, 0.05))
    count, seconds = (sum(column) for column in zip(*spent, strict=True))
    found.append(
        Score(
            name="request-level simulation, CPU time of a request relative to 1/30,000 s",
            metric="ratio",
            value=30_000 * seconds / count,
            bound=1.0,
            rows=len(spent),
            notes=f"{count:,} requests were simulated.",
        )
    )
    fitted, held = loaded(data)
    found.append(
        scored(
            "memory latency under load, Xeon Silver 4110",
            held,
            0.05,
            "interpolated",
            metric="mean relative error",
            notes=f"The constants a and c are fitted to the other points, where the average error is {mean_error(fitted):.1%}.",
        )
    )
    return tuple(found)


def _score(name: str, rows: Sequence[Miss], bound: float) -> Score:
    return scored(name, rows, bound, metric="mean relative error")
