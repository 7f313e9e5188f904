"""SSDs, closed form, against MQSim, a request-level simulator: reads and writes by queue depth, and write amplification.

The part has MQSim's own settings. Two rounding rules of `hwsim.devices.flash` and the sharpness 1.5 are fitted to it.
Throughput under garbage collection is not compared: MQSim's is far below the value that its own write amplification explains.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Final

from hwsim.devices.ssd import Ssd
from hwsim.devices.storage import Access, Direction, StorageAccesses
from published.parts import part, table
from published.score import Miss, Score, scored

_ACCESSES: Final = 1_000_000
_PATTERNS: Final[dict[str, Access]] = {"RANDOM_UNIFORM": "random", "STREAMING": "sequential"}


def scores(data: Path) -> tuple[Score, ...]:
    """Return scores of random reads, chips, writes to a fresh drive, and write amplification."""
    drive = part(Ssd, "mqsim-default")
    depth = table(data / "oracles" / "mqsim_read_iops_vs_qd.csv")
    reads = [
        _miss(drive, "read", row, f"{row['size_B']} B, queue depth {row['qd']}")
        for row in depth
        if row["pattern"] == "RANDOM_UNIFORM"
    ]
    chips = [
        Miss(
            f"{row['channels']} channels x {row['chips_per_channel']} chips, queue depth {row['qd']}",
            _chips(drive, row),
            float(row["iops"]),
        )
        for row in table(data / "oracles" / "mqsim_read_iops_vs_chips.csv")
        if row["dies_per_chip"] == "1"
    ]
    writes = [
        _miss(drive, "write", row, f"{row['pattern'].lower()} {row['size_B']} B, queue depth {row['qd']}")
        for row in table(data / "oracles" / "mqsim_write_fresh_vs_qd.csv")
        if row["cache"] == "TURNED_OFF"
    ]
    worn = [
        Miss(f"over-provisioning {row['OP']}", _amplification(drive, float(row["OP"])), float(row["WA_delta"]))
        for row in table(data / "oracles" / "mqsim_gc_steady_state.csv")
        if row["phase"] == "steady" and row["pattern"] == "RANDOM_UNIFORM"
    ]
    top = [
        _streamed(drive, row)
        for row in depth
        if row["pattern"] == "STREAMING" and row["qd"] == ("512" if row["size_B"] != "131072" else "64")
    ]
    return (
        _score("random reads of 4, 16 and 128 KiB by queue depth 1 to 512", reads, 0.03, _knee),
        _score("random reads by channels and chips", chips, 0.10, _few),
        _score("writes to a fresh drive by queue depth 1 to 256", writes, 0.10, _stairs),
        _score("write amplification of random writes", worn, 0.10, lambda _: "sensitive to the spare capacity"),
        _score("striped reads at full queue depth", top, 0.10, lambda _: ""),
    )


def _score(name: str, rows: list[Miss], bound: float, why: Callable[[Miss], str]) -> Score:
    return scored(name, rows, bound, metric="mean relative error", why=why)


def _miss(drive: Ssd, direction: Direction, row: dict[str, str], name: str) -> Miss:
    asked = StorageAccesses(size=float(row["size_B"]), times=_ACCESSES, access=_PATTERNS[row["pattern"]], depth=float(row["qd"]))
    return Miss(name, _ACCESSES / drive.serve("it", direction, asked).demand.alone({"it.media": 1.0}), float(row["iops"]))


def _streamed(drive: Ssd, row: dict[str, str]) -> Miss:
    assert drive.flash is not None
    size = float(row["size_B"])
    rate = min(drive.flash.reads(size, striped=True), (drive.interface or 0.0) / size)
    return Miss(f"{row['size_B']} B in sequence", rate, float(row["iops"]))


def _chips(drive: Ssd, row: dict[str, str]) -> float:
    assert drive.flash is not None
    made = replace(drive, flash=replace(drive.flash, channels=int(row["channels"]), chips=int(row["chips_per_channel"])))
    asked = StorageAccesses(size=4096.0, times=_ACCESSES, access="random", depth=float(row["qd"]))
    return _ACCESSES / made.serve("it", "read", asked).demand.alone({"it.media": 1.0})


def _amplification(drive: Ssd, over_provisioning: float) -> float:
    return replace(drive, state="steady", over_provisioning=over_provisioning).amplification


def _knee(miss: Miss) -> str:
    return "two requests of 128 KiB (16 pages each) already occupy every chip" if "131072" in miss.row else ""


def _few(miss: Miss) -> str:
    return "several planes of one chip at once" if miss.predicted < miss.measured else "chips and channels both near their limit"


def _stairs(miss: Miss) -> str:
    return "stripes: MQSim's step is later than the closed form's ramp" if "streaming" in miss.row else ""
