"""Keys of services under load, and of what happens to them."""

from __future__ import annotations

from typing import Any, Final

from tests.keys.examples.writing import CPU, between, machine
from tests.keys.feeling import Example

MACHINE: Final = machine(
    between("cpu", "client", "pcie", gen=3, lanes=4),
    cpu={**CPU, "cores": 2, "serves": "fifo"},
    client=CPU,
    disk={"kind": "disk", "read": "1 GB/s", "write": "1 GB/s"},
)


def busy(time: Any, device: str = "cpu") -> dict[str, Any]:
    return {"busy": {"device": device, "time": time}}


SHOP: Final[dict[str, Any]] = {
    "front": {
        "device": "cpu",
        "arrivals": {"poisson": "900 1/s"},
        "workers": 6,
        "queue_limit": 8,
        "within": "8 ms",
        "request": [
            {"busy": {"time": {"exponential": "1 ms"}}},
            {"maybe": {"ratio": "40 %", "do": [busy("200 us")]}},
            {"ask": {
                "service": "back", "times": 1, "timeout": "3 ms", "retries": 2, "refused": "retry",
                "backoff": {"first": "1 ms", "times": 3.0, "jitter": "50 %"},
            }},
            {"choose": {"small": {"share": "70 %", "do": [busy("100 us")]}, "large": {"share": "30 %", "do": [busy("400 us")]}}},
            {"repeat": {"times": 2, "do": [busy("100 us")]}},
        ],
    },
    "back": {
        "device": "cpu",
        "workers": 2,
        "queue_limit": 2,
        "abandoned": "drop",
        "request": [
            {"cache": {"hit": "50 %", "miss": [busy({"exponential": "2 ms"})]}},
            {"lock": {"name": "tail", "group": 2, "do": [busy("500 us")]}},
        ],
    },
}  # fmt: skip
TRIED: Final[dict[str, tuple[Any, ...]]] = {
    "service.device": ("client",), "service.request": ([busy("1 ms")],), "service.arrivals": ({"every": "1 ms"},),
    "service ask.service": ("other",), "service maybe.do": ([busy("3 ms")],), "service repeat.do": ([busy("3 ms")],),
    "service cache.miss": ([busy("3 ms")],), "service lock.do": ([busy("3 ms")],), "service lock.name": ("head",),
    "service choose.do": ([busy("3 ms")],), "workload.events.service": ("front",),
}  # fmt: skip
WORK: Final = [busy("1 ms")]


def poisson(rate: str, name: str = "a") -> dict[str, Any]:
    return {name: {"device": "cpu", "arrivals": {"poisson": rate}, "request": WORK}}


EXAMPLES: Final = (
    Example(
        "a shop under load", MACHINE,
        {"hwsim": "workload/1", "services": {**SHOP, "other": {"device": "cpu", "request": [busy("1 us")]}},
         "requests": 300, "seed": 1, "events": [
             {"at": "50 ms", "service": "back", "down": "20 ms"},
             {"at": "150 ms", "service": "back", "hit": "5 %", "for": "50 ms"},
         ]},
        tried=TRIED, refused={"service choose.share": ("90 %", "add up to 100 %")},
    ),
    Example(
        "jobs under load", MACHINE,
        {"hwsim": "workload/1", "jobs": {
            "one": {"services": poisson("900 1/s"), "requests": 20}, "other": {"services": poisson("90 1/s", "b"), "for": "1 s"},
        }},
        tried={"workload.jobs.*.services": (poisson("9 1/s"),)},
    ),
    Example(
        "a cache that fills", MACHINE,
        {"hwsim": "workload/1", "requests": 400, "services": {"front": {
            "device": "cpu", "arrivals": {"poisson": "900 1/s"},
            "request": [{"cache": {"entries": 20, "of": 1000, "zipf": 0.8, "empty_at": ["0 s", "100 ms"], "miss": WORK}}],
        }}},
        tried={"service cache.empty_at": (["200 ms"],), "service cache.miss": ([busy("3 ms")],)},
    ),
    Example(
        "without the beginning", MACHINE, {"hwsim": "workload/1", "requests": 300, "services": {
            "a": {**poisson("900 1/s")["a"], "warm_up": "100 ms"}, "b": {**poisson("90 1/s")["a"], "warm_up": "until steady"},
        }},
    ),
    Example(
        "for a while", MACHINE, {"hwsim": "workload/1", "for": "100 ms", "services": poisson("900 1/s")},
        tried={"workload.services": (poisson("9 1/s"),)},
    ),
)  # fmt: skip
