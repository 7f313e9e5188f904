"""`scale:` copies are started and stopped by the load.

scale: {target: 20, start: 90 s}
scale: {least: 0, most: 8, by: waiting, target: 5, start: {rate: 2 GB/s, engine: 40 s}, delay: 5 min, limit: 64}

Every `every` the mean of what is counted over the `window` is divided by what a copy is to have; rounded up, that is the
number of copies wanted. More are started at once; fewer only when no more were wanted all through the `delay`. As Knative's
autoscaler has it; a Horizontal Pod Autoscaler of Kubernetes is {every: 15 s, window: 15 s, delay: 5 min}, but for its
tolerance of 10 %.

**Source**: knative/serving, config/core/configmaps/autoscaler.yaml (a look every 2 s, a stable window of 60 s, no delay);
kubernetes.io, Horizontal Pod Autoscaling (15 s, stabilisation of 300 s). **Range**: Knative's panic window is left out.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Literal

from hwsim import ticks
from hwsim.families.serving.workload.settings import ANY
from hwsim.records import dataclass
from hwsim.spec import Mistakes, Place, field, place_field
from hwsim.units import BytesPerSecond, Seconds

Counted = Literal["requests", "waiting", "arrivals"]


@dataclass(frozen=True, slots=True)
class StartKeys:
    """The time from the start of a copy to its first request: its weights are read, then the server gets ready."""

    engine: Seconds = field("of the server, besides its weights: process, compiling, graphs", minimum=0.0, example="40 s")
    rate: BytesPerSecond | None = field(
        "at which its weights are read (default: in no time)", default=None, exclusive_minimum=0.0, example="2 GB/s"
    )
    place: Place = place_field()


@dataclass(frozen=True, slots=True)
class ScaleKeys:
    """Copies that are started and stopped by the load."""

    target: float = field(
        "what a copy is to have: requests, or a second with `by: arrivals`", exclusive_minimum=0.0, example="20"
    )
    start: Seconds | StartKeys = field("from the start of a copy to its first request", minimum=0.0, example="90 s")
    by: Counted = field("what is counted: requests that are there, those of them that wait, or arrivals", default="requests")
    least: int = field("copies, always; with 0 the first request waits for one", default=1, minimum=0)
    most: int | None = field("copies (default: as many as the GPUs hold)", default=None, minimum=1, example="8")
    first: int | None = field("copies at the beginning (default: the least)", default=None, minimum=0, example="2")
    limit: int | None = field(
        "requests of a copy; more wait in one line for the first copy that has room (default: none do)",
        default=None, minimum=1, example="64",
    )  # fmt: skip
    every: Seconds = field("from one look to the next", default=2.0, minimum=1e-3)
    window: Seconds = field("over which the count is averaged", default=60.0, minimum=1e-3)
    delay: Seconds = field("no more are wanted for so long before a copy is stopped", default=0.0, minimum=0.0, example="5 min")
    place: Place = place_field()

    def problems(self) -> Iterator[tuple[str, str, str]]:
        """(key, message, hint) of what cannot be."""
        if self.most is not None and self.most < self.least:
            yield "most", f"{self.most} copies at most, and {self.least} at least", f"most: {max(1, self.least)}"
        if self.every > self.window:
            yield "every", "a look comes only after the window that it looks at", "a window that is longer than `every`"
        if self.limit is not None and self.by == "requests" and self.limit < self.target:
            yield (
                "limit",
                f"a copy takes {self.limit} requests, fewer than the target of {self.target:g}",
                "limit: above `target`",
            )


@dataclass(frozen=True, slots=True)
class Scale:
    """Rules of scaling; times in fs.

    Args:
        start: time from the start of a copy until it is ready. looks: in a window.
    """

    least: int
    most: int
    first: int
    target: float
    by: Counted
    limit: int
    start: int
    every: int
    looks: int
    delay: int


def scale_of(keys: ScaleKeys, copies: Sequence[Sequence[str]], weights: float, mistakes: Mistakes) -> Scale | None:
    """The rules that a file asks for; None once its mistakes are noted.

    weights: bytes on each GPU.
    """
    most = len(copies) if keys.most is None else keys.most
    first = keys.least if keys.first is None else keys.first
    if not keys.least <= first <= most <= len(copies):
        counts = f"{keys.least} copies at least, {first} at first and {most} at most; the GPUs hold {len(copies)}"
        mistakes.add(keys.place, counts, "fewer copies, or more GPUs")
        return None
    seconds = keys.start
    if isinstance(seconds, StartKeys):
        seconds = seconds.engine + (0.0 if seconds.rate is None else weights * len(copies[0]) / seconds.rate)
    return Scale(
        least=keys.least,
        most=most,
        first=first,
        target=keys.target,
        by=keys.by,
        limit=keys.limit or ANY,
        start=ticks.femtoseconds(seconds),
        every=ticks.femtoseconds(keys.every),
        looks=max(1, round(keys.window / keys.every)),
        delay=ticks.femtoseconds(keys.delay),
    )


def always(copies: int) -> Scale:
    """The rules of copies that are all there, always."""
    look = ticks.femtoseconds(2.0)
    return Scale(copies, copies, copies, 1.0, "requests", ANY, 0, every=look, looks=30, delay=0)
