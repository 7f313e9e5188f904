"""Studies: CPU time of a point by what it changes, and how well two processes are used."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from typing import Final

from hwsim.studies.point import Outcome, read_source, run_point
from hwsim.studies.pool import run_all
from hwsim.studies.processes import collect_rarely

PAIR: Final = ("dgx-a100", "resnet50-dp")
POINTS: Final = 40
CLASSES: Final[dict[str, tuple[str, list[str]]]] = {
    "a price": ("machine.gpu.price", [f"{10_000 + number} USD" for number in range(POINTS)]),
    "a link off the path": ("machine.links.uplink.two_way", [str(1.4 + number / 100) for number in range(POINTS)]),
    "a link on the path": ("machine.links.nvlink.links", [str(2 + number % 11) for number in range(POINTS)]),
    "the GPUs' memory": ("machine.gpu.memory.bandwidth", [f"{1500 + number} GB/s" for number in range(POINTS)]),
    "the batch": ("each", [str(100 + number) for number in range(POINTS)]),
    "nothing": ("machine.gpu.count", ["8"] * POINTS),
}
SLEEPING: Final = 0.02  # seconds of a point whose efficiency is measured


class Sleep:
    """A point that takes so long and no CPU: what is left of the time is the pool's."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds

    def __call__(self, values: tuple[object, ...]) -> Outcome:  # noqa: ARG002 (what a study calls)
        time.sleep(self.seconds)
        return Outcome(makespan_s=self.seconds)


def of_points(path: str, values: list[str], study: str) -> float:
    """Seconds of CPU of a point, the first ones left out; study: "" for points that share nothing."""
    both = [read_source("machine", PAIR[0]), read_source("workload", PAIR[1])]
    for value in values[:3]:
        run_point(both[0], both[1], {path: value}, (), study)
    began = time.process_time()
    for value in values[3:]:
        if (outcome := run_point(both[0], both[1], {path: value}, (), study)).error:
            raise ValueError(outcome.error)
    return (time.process_time() - began) / len(values[3:])


def efficiency(seconds: float, points: int, workers: int = 2) -> tuple[float, float]:
    """(part of the time of the processes that points take, CPU seconds of this process for each point)."""
    job, asked = Sleep(seconds), {number: (number,) for number in range(points)}
    list(run_all(job, dict(list(asked.items())[:8]), workers=workers))  # the server that forks has started
    began, busy = time.monotonic(), time.process_time()
    done = sum(1 for _ in run_all(job, asked, workers=workers))  # integers
    took, own = time.monotonic() - began, time.process_time() - busy
    return done * seconds / workers / took, own / done


def rows() -> Iterator[tuple[str, str, str]]:
    """What is measured, the figure, and the figure it is held against."""
    collect_rarely()
    alone = of_points(CLASSES["a link on the path"][0], CLASSES["a link on the path"][1][:12], "")
    yield f"{' x '.join(PAIR)}, a point alone", f"{1e3 * alone:.0f} ms", "-"
    for name, (path, values) in CLASSES.items():
        each = of_points(path, values, f"benchmark {name} {os.getpid()}")
        yield f"a point of a study that changes {name}", f"{1e3 * each:.0f} ms = {each / alone:.2f} of alone", "-"
    for seconds, points in ((0.002, 1000), (0.02, 200), (0.2, 40)):
        part, own = efficiency(seconds, points)
        bound = ">= 80 %" if seconds >= SLEEPING else "-"
        yield f"two processes, points of {1e3 * seconds:.0f} ms", f"{100 * part:.0f} %, {1e3 * own:.2f} ms of CPU here", bound
