"""Hard disks: measured seek curves of five drives, and random accesses per second by queue depth for two of them.

The seek curves are from the DiskSim collection (CMU), one drive each; every second distance is used for fitting. The reference
of the queue is a request-level simulation of the same curves, with shortest positioning time first.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Final

from hwsim.devices.hdd import Hdd
from hwsim.devices.storage import StorageAccesses
from published.parts import part, table
from published.residual import Residual, misses, of_miss
from published.score import Miss, Score, scored

# Curve in the data: part of the library.
DRIVES: Final = {
    "barracuda": "barracuda-7200",
    "ibm18es": "ibm-18es",
    "cheetah9LP": "cheetah-9lp",
    "atlas10k": "atlas-10k",
    "maxtor300g": "atlas-10k-v",
}


def scores(data: Path) -> tuple[Score, ...]:
    """Return scores of held-out seek distances, and of accesses per second by queue depth."""
    seeks = misses(residuals(data), "known")
    queue = [
        Miss(
            f"{row['disk_seek_source']} {row['policy']}, queue depth {row['qd']}",
            _rate(row),
            float(row["iops"]),
            row["disk_seek_source"],
        )
        for row in table(data / "oracles" / "hdd_micro_ncq.csv")
        if row["policy"] in ("FCFS", "SPTF")
    ]
    return (
        scored("seek time by distance, five drives", seeks, 0.08, "interpolated", metric="mean relative error", why=_why),
        scored(
            "IOPS by queue depth 1 to 64, two drives",
            queue,
            0.08,
            metric="mean relative error",
        ),
    )


def residuals(data: Path) -> list[Residual]:
    """Return residuals of held-out seek distances."""
    return [
        of_miss(
            Miss(f"{drive} over {distance:.0f} cylinders", model.seek.seconds(distance), seconds, drive),
            "disk",
            "seek",
            "known",
            unit=name,
            work=f"a seek over {distance:.0f} cylinders",
            device=name,
        )
        for drive, name in DRIVES.items()
        for model in (part(Hdd, name),)
        for distance, seconds in _curve(data, drive)[1::2]
    ]


def _why(miss: Miss) -> str:
    return (
        "faulty point: shorter than every seek over fewer cylinders"
        if miss.predicted > 1.5 * miss.measured
        else "knee of the seek curve"
    )


def _curve(data: Path, drive: str) -> list[tuple[float, float]]:
    rows = table(data / "oracles" / "disksim_seek_curves.csv")
    found = [(float(row["distance_cyl"]), float(row["seek_ms"]) * 1e-3) for row in rows if row["disk"] == drive]
    return sorted(found)


def _rate(row: dict[str, str]) -> float:
    """Return the accesses per second of the part at full queue depth."""
    found = part(Hdd, DRIVES[row["disk_seek_source"]])
    model = replace(found, queue=int(row["qd"]), gain=found.gain if row["policy"] == "SPTF" else 0.0)
    asked = StorageAccesses(size=0.02e-3 * model.rate(0.5), times=1000, access="random", depth=float(row["qd"]))
    return 1000 / model.serve("it", "read", asked).demand.alone({"it.media": 1.0})
