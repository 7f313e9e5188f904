"""A disk at a part of its speed is a disk whose rates are that much smaller, and whose latency is the same."""

from __future__ import annotations

from itertools import product
from typing import Any, Final

import pytest

import hwsim

CPU: Final = {"kind": "cpu", "cores": 4, "flop": {"fp32": "1 TFLOP/s"}, "memory": {"size": "64 GiB", "bandwidth": "100 GB/s"}}
LINK: Final = {"name": "bus", "between": ["cpu", "disk"], "kind": "direct", "bandwidth": "100 GB/s"}
DISKS: Final[dict[str, tuple[dict[str, Any], dict[str, float]]]] = {  # what stays, and what is slower
    "disk": ({"latency": "1 ms", "queue": 8}, {"read": 1e9, "write": 5e8, "iops": 20e3}),
    "ssd": ({"latency": "100 us", "write_latency": "20 us"}, {"read": 3e9, "write": 2e9, "iops": 5e5, "write_iops": 3e5}),
    "volume": ({"latency": "1 ms"}, {"iops": 3e3, "bandwidth": 250e6}),
    "filesystem": ({"latency": "1 ms"}, {"bandwidth": 10e9}),
}
LARGEST: Final = {"ssd": 0.12}  # of the straight line below the knee of its accesses a second


def machine(kind: str, speed: float = 1.0) -> dict[str, Any]:
    same, slower = DISKS[kind]
    disk = {"kind": kind, **same, **{key: f"{rate * speed} {'1/s' if 'iops' in key else 'B/s'}" for key, rate in slower.items()}}
    return {"hwsim": "machine/1", "class": "ideal", "parts": {"cpu": CPU, "disk": disk}, "links": [LINK]}


def seconds(kind: str, work: dict[str, Any], *, event: float = 1.0, files: float = 1.0, engine: Any = "auto") -> float:
    events = [{"at": "0 s", "part": "disk", "speed": event}] if event < 1 else []
    workload = {"hwsim": "workload/1", **work, "events": events}
    return hwsim.simulate(machine(kind, files), workload, engine=engine).timeline.makespan


@pytest.mark.parametrize("speed", [0.1, 0.5])
@pytest.mark.parametrize(("do", "depth"), [*product(("read", "write"), (1, 4, 32)), ("sync", 1)])
@pytest.mark.parametrize("kind", DISKS)
def test_a_slow_disk_is_one_of_smaller_rates(kind: str, do: str, depth: int, speed: float) -> None:
    wheres: dict[str, dict[str, Any]] = {"read": {"from": "disk"}, "write": {"to": "disk"}, "sync": {"to": "disk", "sync": True}}
    where = wheres[do]
    for size in ("4 KiB", "100 kB", "1 MB"):
        for access in ("random", "sequential"):
            op = {**where, "bytes": size, "times": 1000, "access": access, "depth": depth}
            work = {"program": [{"read" if do == "read" else "write": op}]}
            slow, by_hand = seconds(kind, work, event=speed), seconds(kind, work, files=speed)
            assert slow == pytest.approx(by_hand, rel=LARGEST.get(kind, 1e-6) if depth > 1 else 1e-6)


@pytest.mark.parametrize("engine", ["auto", "simpy"])
@pytest.mark.parametrize("every", ["50 ms", "1 ms"])
@pytest.mark.parametrize("kind", DISKS)
def test_requests_at_a_slow_disk_wait_as_at_one_of_smaller_rates(kind: str, every: str, engine: str) -> None:
    read = {"read": {"from": "disk", "bytes": "100 kB", "times": 5, "access": "random"}}
    service = {"device": "cpu", "arrivals": {"every": every}, "request": [read]}
    work = {"services": {"x": service}, "requests": 100}
    slow, by_hand = (seconds(kind, work, engine=engine, **{how: 0.1}) for how in ("event", "files"))
    assert slow == pytest.approx(by_hand, rel=0.01)


def test_one_ms_of_latency_and_one_of_transfer() -> None:
    """1,000 reads of 100 kB, one after another, at 100 MB/s: 1 ms + 1 ms each."""
    read = {"program": [{"read": {"from": "disk", "bytes": "100 kB", "times": 1000, "access": "random"}}]}
    assert seconds("disk", read) == pytest.approx(1.1)
    assert seconds("disk", read, event=0.1) == pytest.approx(2.0)
