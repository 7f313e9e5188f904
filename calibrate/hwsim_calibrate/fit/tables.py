"""What other tools print, as parts with measured numbers: nccl-tests, fio, the OSU benchmarks.

    part = nccl_tests(Path("out.txt").read_text())
    Path("mine.yaml").write_text(part.yaml())       # then `collectives: {use: ./mine.yaml}` or `disk: {use: ./mine.yaml}`

Each gives the numbers of the simplest part that has them, the error of the fit at every size among its notes.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from hwsim.demand import softened
from hwsim.spec import Mistake, SpecError
from hwsim_calibrate.fit.solve import Floats, Problem, solve
from hwsim_calibrate.fit.writing import quantity, text

_ROW: Final = re.compile(r"^\s*(\d+)\s+(\d+)\s+(\S+)\s+(\S+)\s+(-?\d+)\s+([\d.]+)\s+([\d.]+)\s+([\d.]+)\s")
_OSU: Final = re.compile(r"^\s*(\d+)\s+([\d.]+)\s*")
_TITLE: Final = re.compile(r"^#\s*OSU\s+(.*)$")
FACTORS: Final[Mapping[str, str]] = {  # nccl-tests: busbw over algbw, by the name of its program
    "all_reduce": "all-reduce", "all_gather": "all-gather", "reduce_scatter": "reduce-scatter", "broadcast": "broadcast",
    "alltoall": "all-to-all", "sendrecv": "send", "reduce": "reduce",
}  # fmt: skip
OSU: Final[Mapping[str, str]] = {
    "allreduce": "all-reduce", "allgather": "all-gather", "alltoall": "all-to-all", "bcast": "broadcast", "reduce": "reduce",
    "latency": "send", "bandwidth": "stream", "bi-directional": "stream-both",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Part:
    """A part of the library: what its file says."""

    said: Mapping[str, Any]

    def yaml(self) -> str:
        """The file."""
        return text(self.said)


@dataclass(frozen=True, slots=True)
class Knee:
    """start + root x sqrt(bytes) + (bytes + knee (1 - exp(-bytes / knee))) / rate.

    median, worst: relative errors at the `points` sizes it was fitted to.
    """

    start: float
    rate: float
    knee: float
    root: float
    median: float
    worst: float
    points: int

    def seconds(self, size: float) -> float:
        """Time of so many bytes."""
        return self.start + self.root * math.sqrt(size) + softened(size, self.knee) / self.rate


def knee_of(points: Sequence[tuple[float, float]], *, rooted: bool = False) -> Knee:
    """The curve through (bytes, seconds): relative errors count, outliers little.

    >>> found = knee_of([(8.0 * 4**n, 10e-6 + 8.0 * 4**n / 50e9) for n in range(14)])
    >>> round(found.start * 1e6, 1), round(found.rate / 1e9, 1)
    (10.0, 50.0)
    """
    size, time = (np.array(each, np.float64) for each in zip(*sorted(points), strict=True))
    guess = np.log([time[0], size[-1] / time[-1], 1e5, time[0] / 1e4])

    def times(x: Floats) -> tuple[Floats, Floats]:
        start, rate, knee, root = np.exp(x)
        fell = np.exp(-size / knee)
        extra = knee * (1.0 - fell)
        whole = start + (size + extra) / rate + (root * np.sqrt(size) if rooted else 0.0)
        slopes = np.stack(
            [
                np.full(len(size), start),
                -(size + extra) / rate,
                (extra - size * fell) / rate,
                root * np.sqrt(size) if rooted else np.zeros(len(size)),
            ],
            axis=1,
        )
        return whole, slopes

    x = solve(Problem(times, time, guess, np.array([2.0, 2.0, 2.0, 2.0]), np.ones(len(size))), scale=0.1)
    errors = np.abs(times(x)[0] / time - 1.0)
    start, rate, knee, root = (float(each) for each in np.exp(x))
    return Knee(start, rate, knee, root if rooted else 0.0, float(np.median(errors)), float(errors.max()), len(size))


def nccl_tests(said: str) -> Part:
    """The overheads of a communication library from what an nccl-tests program prints; its out-of-place columns.

    `efficiency` needs the rate of the links: it is left to the file that uses the part; here is `bandwidth` in the notes.

    Raises:
        SpecError: there are no rows of sizes and times in it.
    """
    rows = [found for found in map(_ROW.match, said.splitlines()) if found]
    points = [(float(row[1]), float(row[6]) * 1e-6) for row in rows if int(row[1]) > 0 and float(row[6]) > 0]
    if len(points) < 3:
        raise _nothing("nccl-tests", "lines of `size count type redop root time algbw busbw ...`")
    curve = knee_of(points)
    bus = max(float(row[8]) for row in rows) * 1e9
    name = next((FACTORS[each] for each in FACTORS if f"{each}_perf" in said), "a collective")
    ranks = len(re.findall(r"^#\s+Rank\s+\d+", said, re.MULTILINE))
    notes = (
        f"{name}{f' among {ranks}' if ranks else ''}: {quantity(curve.rate, 'B/s')} of bytes over time for long messages, "
        f"bus bandwidth {quantity(bus, 'B/s')}; fitted to {_told(curve)}. "
        "Set `efficiency` to the bus bandwidth over what the links carry."
    )
    return Part(
        {
            "hwsim": "part/1",
            "kind": "overheads",
            "name": f"measured by nccl-tests, {name}",
            "notes": notes,
            "source": "measured",
            "ref": "nccl-tests, out of place",
            "start": {"value": quantity(curve.start, "s"), "points": curve.points},
            "knee": {"value": quantity(curve.knee, "B"), "points": curve.points},
        }
    )


def osu(said: str) -> Part:
    """A curve of MPI from what the OSU benchmarks print; several outputs one after another give several curves.

    Raises:
        SpecError: there are no titles with rows of sizes and times in it.
    """
    titles: dict[str, list[tuple[float, float]]] = {}
    now = ""
    for line in said.splitlines():
        title = _TITLE.match(line)
        if title:
            words = title[1].lower().replace("-directional bandwidth", "-directional")
            now = next((OSU[each] for each in sorted(OSU, key=len, reverse=True) if each in words), "")
        elif now and (row := _OSU.match(line)):
            size, value = float(row[1]), float(row[2])
            if value > 0 and size > 0:
                titles.setdefault(now, []).append((size, size / (value * 1e6) if now.startswith("stream") else value * 1e-6))
    curves, told = {}, []
    for name, points in titles.items():
        if len(points) < 3:
            continue
        curve = knee_of(points, rooted=True)
        curves[name] = {
            "start": {"value": quantity(curve.start, "s"), "points": curve.points},
            "bandwidth": {"value": quantity(curve.rate, "B/s"), "points": curve.points},
            "root": {"value": quantity(curve.root, "s"), "points": curve.points},
            "knee": {"value": quantity(curve.knee, "B"), "points": curve.points},
        }
        told.append(f"{name}: {_told(curve)}")
    if not curves:
        raise _nothing("the OSU benchmarks", "a line `# OSU MPI Latency Test` and lines of sizes and values")
    return Part(
        {
            "hwsim": "part/1",
            "kind": "mpi",
            "name": "measured by the OSU benchmarks",
            "notes": "fitted to " + "; ".join(told),
            "source": "measured",
            "ref": "OSU micro-benchmarks",
            "curves": curves,
        }
    )


def fio(said: str) -> Part:
    """A disk from fio's JSON: bandwidth from its largest blocks, latency from one small block at a time, IOPS from many.

    Raises:
        SpecError: it is no output of `fio --output-format=json`, or no job in it reads.
    """
    try:
        jobs = json.loads(said[said.index("{") :])["jobs"]
        found = [_job(job, way) for job in jobs for way in ("read", "write") if job[way]["io_bytes"] > 0]
    except (KeyError, TypeError, ValueError) as error:
        raise _nothing("fio", "the output of `fio --output-format=json`") from error
    reads, writes = ([each for each in found if each["way"] == way] for way in ("read", "write"))
    if not reads:
        raise _nothing("fio", "a job that reads")
    part: dict[str, Any] = {
        "hwsim": "part/1",
        "kind": "disk",
        "name": "measured by fio",
        "source": "measured",
        "ref": f"fio, {len(jobs)} jobs",
        "read": quantity(max(each["rate"] for each in reads), "B/s"),
    }
    if writes:
        part["write"] = quantity(max(each["rate"] for each in writes), "B/s")
    for rows, latency, most in ((reads, "latency", "iops"), (writes, "write_latency", "write_iops")):
        small = [each for each in rows if each["random"]]
        alone = [each for each in small if each["depth"] <= 1]
        if alone:
            own = min(alone, key=lambda each: each["size"])
            rate = max(each["rate"] for each in rows)
            part[latency] = quantity(max(own["latency"] - own["size"] / rate, 1e-9), "s")
        deep = [each for each in small if each["depth"] > 1]
        if deep and (most == "iops" or "iops" in part):
            part[most] = quantity(max(each["iops"] for each in deep), "1/s")
    depth = max((each["depth"] for each in reads if each["random"]), default=1)
    return Part(part | ({"queue": depth} if depth > 1 else {}))


def _job(job: Mapping[str, Any], way: str) -> dict[str, Any]:
    options = {**job.get("job options", {})}
    side = job[way]
    mode = str(options.get("rw", options.get("readwrite", "read")))
    return {
        "way": way,
        "random": mode.startswith("rand"),
        "depth": int(options.get("iodepth", 1)) * int(options.get("numjobs", 1)),
        "size": _bytes(str(options.get("bs", options.get("blocksize", "4k")))),
        "rate": float(side["bw_bytes"]) if "bw_bytes" in side else float(side["bw"]) * 1024.0,
        "iops": float(side["iops"]),
        "latency": float(side["lat_ns"]["mean"]) * 1e-9 if "lat_ns" in side else 1.0 / float(side["iops"]),
    }


def _bytes(said: str) -> float:
    """fio's sizes: k, m, g are powers of 1024.

    >>> _bytes("4k"), _bytes("1M"), _bytes("512")
    (4096.0, 1048576.0, 512.0)
    """
    found = re.fullmatch(r"(\d+)\s*([kmg]?)i?b?", said.strip().lower())
    if not found:
        raise ValueError(f"'{said}' is no size")
    return float(found[1]) * 1024.0 ** " kmg".index(found[2] or " ")


def _told(curve: Knee) -> str:
    return f"{curve.points} sizes, median error {100 * curve.median:.1f} %, worst {100 * curve.worst:.0f} %"


def _nothing(tool: str, hint: str) -> SpecError:
    return SpecError([Mistake(None, f"nothing in it was printed by {tool}", f"it has {hint}")])
