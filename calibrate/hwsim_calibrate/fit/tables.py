"""Parts with measured numbers from the output of other tools: nccl-tests, fio, the OSU benchmarks.

    part = nccl_tests(Path("out.txt").read_text())
    Path("mine.yaml").write_text(part.yaml())       # then `collectives: {use: ./mine.yaml}` or `disk: {use: ./mine.yaml}`

Each function returns the simplest part that has the numbers, with the error of the fit in its notes.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from hwsim.demand import softened
from hwsim.formats import percent
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
    """A part of the library; said: the content of its file."""

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
        """Time of a message of `size` bytes."""
        return self.start + self.root * math.sqrt(size) + softened(size, self.knee) / self.rate

    def key(self, value: float, unit: str) -> dict[str, Any]:
        """A number of the curve as a part's file has it."""
        return {"value": quantity(value, unit), "points": self.points}

    def __str__(self) -> str:
        return f"{self.points} sizes, median error {percent(self.median, '.1f')}, worst {percent(self.worst, '.0f')}"


def knee_of(points: Sequence[tuple[float, float]], *, rooted: bool = False) -> Knee:
    """The curve through (bytes, seconds), with relative errors and little weight for outliers; rooted: with the square root.

    >>> curve = knee_of([(8.0 * 4**n, 10e-6 + 8.0 * 4**n / 50e9) for n in range(14)])
    >>> round(curve.start * 1e6, 1), round(curve.rate / 1e9, 1)
    (10.0, 50.0)
    """
    size, time = (np.array(each, np.float64) for each in zip(*sorted(points), strict=True))
    guess = np.log([time[0], size[-1] / time[-1], 1e5, time[0] / 1e4])

    def times(x: Floats) -> tuple[Floats, Floats]:
        start, rate, knee, root = np.exp(x)
        decay = np.exp(-size / knee)
        extra, slow = knee * (1.0 - decay), root * np.sqrt(size) * rooted
        slopes = (np.full(len(size), start), -(size + extra) / rate, (extra - size * decay) / rate, slow)
        return start + (size + extra) / rate + slow, np.stack(slopes, axis=1)

    x = solve(Problem(times, time, guess, np.full(4, 2.0), np.ones(len(size))), scale=0.1)
    errors = np.abs(times(x)[0] / time - 1.0)
    start, rate, knee, root = (float(each) for each in np.exp(x))
    return Knee(start, rate, knee, root if rooted else 0.0, float(np.median(errors)), float(errors.max()), len(size))


def nccl_tests(output: str) -> Part:
    """The overheads of a communication library from the out-of-place columns of an nccl-tests program.

    `efficiency` needs the rate of the links: it is left to the file that uses the part; the notes have the bus bandwidth.

    Raises:
        SpecError: there are no rows of sizes and times.
    """
    rows = [row for row in map(_ROW.match, output.splitlines()) if row]
    points = [(float(row[1]), float(row[6]) * 1e-6) for row in rows if int(row[1]) > 0 and float(row[6]) > 0]
    if len(points) < 3:
        raise _nothing("nccl-tests", "lines of `size count type redop root time algbw busbw ...`")
    curve = knee_of(points)
    bus = max(float(row[8]) for row in rows) * 1e9
    name = next((FACTORS[each] for each in FACTORS if f"{each}_perf" in output), "a collective")
    ranks = len(re.findall(r"^#\s+Rank\s+\d+", output, re.MULTILINE))
    notes = (
        f"{name}{f' among {ranks}' if ranks else ''}: {quantity(curve.rate, 'B/s')} of bytes over time for long messages, "
        f"bus bandwidth {quantity(bus, 'B/s')}; fitted to {curve}. "
        "Set `efficiency` to the bus bandwidth over what the links carry."
    )
    return _part(
        "overheads", f"nccl-tests, {name}", "nccl-tests, out of place", notes,
        {"start": curve.key(curve.start, "s"), "knee": curve.key(curve.knee, "B")},
    )  # fmt: skip


def osu(output: str) -> Part:
    """Curves of MPI from the output of one OSU benchmark, or of several one after another.

    Raises:
        SpecError: there are no titles with rows of sizes and times.
    """
    points: dict[str, list[tuple[float, float]]] = {}
    title = ""
    for line in output.splitlines():
        if match := _TITLE.match(line):
            words = match[1].lower().replace("-directional bandwidth", "-directional")
            title = next((OSU[each] for each in sorted(OSU, key=len, reverse=True) if each in words), "")
        elif title and (row := _OSU.match(line)):
            size, value = float(row[1]), float(row[2])
            if value > 0 and size > 0:
                seconds = size / (value * 1e6) if title.startswith("stream") else value * 1e-6
                points.setdefault(title, []).append((size, seconds))
    curves = {name: knee_of(rows, rooted=True) for name, rows in points.items() if len(rows) >= 3}
    if not curves:
        raise _nothing("the OSU benchmarks", "a line `# OSU MPI Latency Test` and lines of sizes and values")
    keys = {
        name: {
            "start": curve.key(curve.start, "s"), "bandwidth": curve.key(curve.rate, "B/s"), "root": curve.key(curve.root, "s"),
            "knee": curve.key(curve.knee, "B"),
        }
        for name, curve in curves.items()
    }  # fmt: skip
    notes = "fitted to " + "; ".join(f"{name}: {curve}" for name, curve in curves.items())
    return _part("mpi", "the OSU benchmarks", "OSU micro-benchmarks", notes, {"curves": keys})


def fio(output: str) -> Part:
    """A disk from fio's JSON: bandwidth from its largest blocks, latency from one small block at a time, IOPS from many.

    Raises:
        SpecError: it is no output of `fio --output-format=json`, or no job in it reads.
    """
    try:
        jobs = json.loads(output[output.index("{") :])["jobs"]
        runs = [_job(job, direction) for job in jobs for direction in ("read", "write") if job[direction]["io_bytes"] > 0]
    except (KeyError, TypeError, ValueError) as error:
        raise _nothing("fio", "the output of `fio --output-format=json`") from error
    reads, writes = ([run for run in runs if run["direction"] == direction] for direction in ("read", "write"))
    if not reads:
        raise _nothing("fio", "a job that reads")
    keys: dict[str, Any] = {"read": quantity(max(run["rate"] for run in reads), "B/s")}
    if writes:
        keys["write"] = quantity(max(run["rate"] for run in writes), "B/s")
    for rows, latency, most in ((reads, "latency", "iops"), (writes, "write_latency", "write_iops")):
        alone = [run for run in rows if run["random"] and run["depth"] <= 1]
        deep = [run for run in rows if run["random"] and run["depth"] > 1]
        if alone:
            small = min(alone, key=lambda run: run["size"])
            rate = max(run["rate"] for run in rows)
            keys[latency] = quantity(max(small["latency"] - small["size"] / rate, 1e-9), "s")
        if deep and (most == "iops" or "iops" in keys):
            keys[most] = quantity(max(run["iops"] for run in deep), "1/s")
    depth = max((run["depth"] for run in reads if run["random"]), default=1)
    return _part("disk", "fio", f"fio, {len(jobs)} jobs", "", keys | ({"queue": depth} if depth > 1 else {}))


def _job(job: Mapping[str, Any], direction: str) -> dict[str, Any]:
    """One direction of a job: block size in bytes, rate in B/s, latency in seconds."""
    options, side = {**job.get("job options", {})}, job[direction]
    return {
        "direction": direction,
        "random": str(options.get("rw", options.get("readwrite", "read"))).startswith("rand"),
        "depth": int(options.get("iodepth", 1)) * int(options.get("numjobs", 1)),
        "size": _bytes(str(options.get("bs", options.get("blocksize", "4k")))),
        "rate": float(side["bw_bytes"]) if "bw_bytes" in side else float(side["bw"]) * 1024.0,
        "iops": float(side["iops"]),
        "latency": float(side["lat_ns"]["mean"]) * 1e-9 if "lat_ns" in side else 1.0 / float(side["iops"]),
    }


def _bytes(text: str) -> float:
    """fio's sizes: k, m, g are powers of 1024.

    >>> _bytes("4k"), _bytes("1M"), _bytes("512")
    (4096.0, 1048576.0, 512.0)
    """
    match = re.fullmatch(r"(\d+)\s*([kmg]?)i?b?", text.strip().lower())
    if not match:
        raise ValueError(f"'{text}' is no size")
    return float(match[1]) * 1024.0 ** " kmg".index(match[2] or " ")


def _part(kind: str, tool: str, ref: str, notes: str, keys: Mapping[str, Any]) -> Part:
    noted = {"notes": notes} if notes else {}
    return Part(
        {"hwsim": "part/1", "kind": kind, "name": f"measured by {tool}", **noted, "source": "measured", "ref": ref, **keys}
    )


def _nothing(tool: str, hint: str) -> SpecError:
    return SpecError([Mistake(None, f"nothing in it was printed by {tool}", f"it has {hint}")])


TOOLS: Final[Mapping[str, Callable[[str], Part]]] = {"nccl_tests": nccl_tests, "fio": fio, "osu": osu}
