"""`scale:` autoscaling: replicas start and stop with the load.

scale: {target: 20, start: 90 s}
scale: {least: 0, most: 8, by: waiting, target: 5, start: {rate: 2 GB/s, engine: 40 s}, delay: 5 min, limit: 64}

At intervals of `every`, the autoscaler computes the desired number of replicas, as Knative's autoscaler does:

    desired = ceil(mean load metric over `window` / `target`), between `least` and `most`

Replicas start at once. They stop only if fewer replicas were desired throughout the last `delay`. A Horizontal Pod Autoscaler of
Kubernetes is {every: 15 s, window: 15 s, delay: 5 min}, except for its tolerance of 10 %.

**Source**: knative/serving, config/core/configmaps/autoscaler.yaml (decisions every 2 s, a stable window of 60 s, no delay);
kubernetes.io, Horizontal Pod Autoscaling (15 s, stabilisation of 300 s). **Range**: Knative's panic window is not modelled.
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
    """Start time of a replica: the time to load its weights, then the start time of its server."""

    engine: Seconds = field("server start without weights: process, compilation, CUDA graphs", minimum=0.0, example="40 s")
    rate: BytesPerSecond | None = field(
        "bandwidth to load the weights of a replica (default: infinite)", default=None, exclusive_minimum=0.0, example="2 GB/s"
    )
    place: Place = place_field()


@dataclass(frozen=True, slots=True)
class ScaleKeys:
    """Autoscaling: replicas start and stop with the load."""

    target: float = field(
        "target value of the load metric `by` for one replica: requests, or requests per second for `arrivals`",
        exclusive_minimum=0.0, example="20",
    )  # fmt: skip
    start: Seconds | StartKeys = field("time from the start of a replica until it is ready", minimum=0.0, example="90 s")
    by: Counted = field("load metric: requests in flight (`requests`), queued requests, or the arrival rate", default="requests")
    least: int = field("minimum number of replicas; with 0, the first request waits until one starts", default=1, minimum=0)
    most: int | None = field("maximum number of replicas (default: as the GPUs allow)", default=None, minimum=1, example="8")
    first: int | None = field("number of replicas at the start (default: `least`)", default=None, minimum=0, example="2")
    limit: int | None = field(
        "maximum number of requests at a replica; further requests wait in a shared queue (default: no limit)",
        default=None, minimum=1, example="64",
    )  # fmt: skip
    every: Seconds = field("interval between scaling decisions", default=2.0, minimum=1e-3)
    window: Seconds = field("time over which the load metric is averaged", default=60.0, minimum=1e-3)
    delay: Seconds = field("a replica stops only if fewer were desired throughout this time", default=0.0, minimum=0.0,
                           example="5 min")  # fmt: skip
    place: Place = place_field()

    def problems(self) -> Iterator[tuple[str, str, str]]:
        """Yield (key, message, hint) for each invalid setting."""
        if self.most is not None and self.most < self.least:
            yield "most", f"`most` is {self.most}: expected at least {self.least}, as in `least`", f"most: {max(1, self.least)}"
        if self.every > self.window:
            yield "every", "`every` is longer than `window`: expected at most the window", f"every: {self.window:g} s"
        if self.limit is not None and self.by == "requests" and self.limit < self.target:
            message = f"`limit` is {self.limit} requests: expected at least {self.target:g}, the `target` of a replica"
            yield "limit", message, f"limit: {-(-self.target // 1):.0f}"


@dataclass(frozen=True, slots=True)
class Scale:
    """The rules of an autoscaler; times in fs.

    Args:
        least, most, first: minimum, maximum and initial number of replicas.
        target: load metric for one replica.
        by: load metric.
        limit: maximum requests at a replica.
        start: time from the start of a replica until it is ready.
        every: interval between decisions.
        looks: decisions in one window.
        delay: time of lower demand before a replica stops.
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
    """Return the rules of a file; None if they are not valid, which is noted in `mistakes`.

    Args:
        keys: keys of the file.
        copies: GPUs of each possible replica.
        weights: bytes of weights on each GPU.
        mistakes: list to which invalid settings are added.
    """
    most = len(copies) if keys.most is None else keys.most
    first = keys.least if keys.first is None else keys.first
    if not keys.least <= first <= most <= len(copies):
        message = f"expected least <= first <= most <= {len(copies)}, the replicas that fit on the GPUs"
        mistakes.add(keys.place, f"{message}, got {keys.least}, {first} and {most}", "fewer replicas, or more GPUs")
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


def fixed_scale(copies: int) -> Scale:
    """Return the rules of a fixed number of replicas."""
    look = ticks.femtoseconds(2.0)
    return Scale(copies, copies, copies, 1.0, "requests", ANY, 0, every=look, looks=30, delay=0)
