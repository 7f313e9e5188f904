"""Hard disks: seek curves measured on five drives, and accesses a second against the queue of two of them.

Seek curves are those of the DiskSim collection (CMU), one drive each; even positions of the sorted distances are fitted,
the others are reported.  The queue is a request-level simulation of the same curves, shortest positioning first.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final

from hwsim.devices.hdd import Hdd
from hwsim.devices.storage import Asked
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
    """Seek curves on the half not fitted; accesses a second against depth."""
    seeks = misses(residuals(data), "known")
    queue = [
        Miss(
            f"{row['disk_seek_source']} {row['policy']}, {row['qd']} under way",
            _rate(row),
            float(row["iops"]),
            row["disk_seek_source"],
        )
        for row in table(data / "oracles" / "hdd_micro_ncq.csv")
        if row["policy"] in ("FCFS", "SPTF")
    ]
    return (
        scored("seek curves of five drives", seeks, 0.08, "held out", metric="mean |error|", why=_why),
        scored(
            "accesses a second against depth 1..64, two drives",
            queue,
            0.08,
            metric="mean |error|",
            notes="a request-level simulation on the measured curves; the gain was fitted on it",
        ),
    )


def residuals(data: Path) -> list[Residual]:
    """Seeks over distances held out."""
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
        "misread: shorter than every seek over fewer cylinders" if miss.predicted > 1.5 * miss.measured else "knee of the curve"
    )


def fit(data: Path) -> None:
    """Print the seek curve of each drive from every other point."""
    for drive, name in DRIVES.items():
        points = _rising(_curve(data, drive)[0::2])
        a, b, c, e, bend = min(_candidates(points))[1]
        print(f"{name}: a: {a * 1e3:.4g} ms, b: {b * 1e6:.4g} us, c: {c * 1e3:.4g} ms, e: {e * 1e9:.4g} ns, bend: {bend:.0f}")


def _curve(data: Path, drive: str) -> list[tuple[float, float]]:
    rows = table(data / "oracles" / "disksim_seek_curves.csv")
    found = [(float(row["distance_cyl"]), float(row["seek_ms"]) * 1e-3) for row in rows if row["disk"] == drive]
    return sorted(found)


def _rising(points: Sequence[tuple[float, float]]) -> list[tuple[float, float]]:
    """Without what cannot be: a seek much shorter than one over fewer cylinders (two such points, of one drive)."""
    longest, kept = 0.0, []
    for distance, seconds in points:
        if seconds > 0.7 * longest:
            kept.append((distance, seconds))
            longest = max(longest, seconds)
    return kept


def _rate(row: dict[str, str]) -> float:
    """Accesses a second of the part with this queue, all of whose depth is used."""
    found = part(Hdd, DRIVES[row["disk_seek_source"]])
    model = replace(found, queue=int(row["qd"]), gain=found.gain if row["policy"] == "SPTF" else 0.0)
    asked = Asked(size=0.02e-3 * model.rate(0.5), times=1000, access="random", depth=float(row["qd"]))
    return 1000 / model.serve("it", "read", asked).demand.alone({"it.media": 1.0})


def _candidates(points: Sequence[tuple[float, float]]) -> Iterator[tuple[float, tuple[float, float, float, float, float]]]:
    """(mean relative error, constants) for every place of the bend."""
    for at in range(4, len(points) - 4):
        bend = points[at][0]
        a, b = _line([(math.sqrt(distance), seconds) for distance, seconds in points[: at + 1]])
        c, e = _line(points[at + 1 :])
        errors = [
            abs((a + b * math.sqrt(distance) if distance <= bend else c + e * distance) / seconds - 1)
            for distance, seconds in points
        ]
        if min(b, e) >= 0 and c + e * bend >= 0.98 * (a + b * math.sqrt(bend)):
            yield sum(errors) / len(errors), (a, b, c, e, bend)


def _line(points: Sequence[tuple[float, float]]) -> tuple[float, float]:
    """Intercept and slope with the least squares of relative errors."""
    w = [1 / y**2 for _, y in points]
    sw, sx, sy = (
        sum(w),
        sum(k * x for k, (x, _) in zip(w, points, strict=True)),
        sum(k * y for k, (_, y) in zip(w, points, strict=True)),
    )
    sxx = sum(k * x * x for k, (x, _) in zip(w, points, strict=True))
    sxy = sum(k * x * y for k, (x, y) in zip(w, points, strict=True))
    slope = (sw * sxy - sx * sy) / (sw * sxx - sx * sx) if sw * sxx > sx * sx else 0.0
    return (sy - slope * sx) / sw, slope
