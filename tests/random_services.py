"""Random files of services on a small machine: asks with timeouts and jitter, caches, locks, branches, and draws."""

from __future__ import annotations

import random
from typing import Any, Final

from tests.service_cases import busy

File = dict[str, Any]
CPU: Final[File] = {"kind": "cpu", "memory": {"bandwidth": "20 GB/s", "size": "1 GB"}, "flop": {"fp32": "100 GFLOP/s"}}
DISKS: Final[tuple[File, ...]] = (
    {"kind": "disk", "read": "1 GB/s", "write": "500 MB/s", "latency": "50 us"},
    {"kind": "ssd", "use": "nvme-980pro"},
    {"kind": "hdd", "use": "hdd-7200rpm"},
    {"kind": "raid", "use": "raid5-hdd"},
)


def random_machine(dice: random.Random) -> File:
    """Two CPUs, a disk, and a link between them."""
    parts = {
        "cpu": {**CPU, "cores": dice.choice([1, 2, 4]), "serves": dice.choice(["shared", "shared", "fifo"])},
        "far": {**CPU, "cores": dice.choice([1, 4])},
        "idle": {**CPU, "cores": 1},
        "disk": dice.choice(DISKS),
    }
    links: list[File] = [
        {"name": "wire", "between": ["cpu", "far"], "kind": "direct", "bandwidth": "1 GB/s", "latency": "10 us"},
        {"name": "bus", "between": ["cpu", "disk"], "kind": "direct", "bandwidth": "8 GB/s"},
        {"name": "line", "between": ["cpu", "idle"], "kind": "direct", "bandwidth": "1 GB/s"},
    ]
    return {"hwsim": "machine/1", "class": "ideal", "parts": parts, "links": links}


def random_services(dice: random.Random, requests: int = 200) -> File:
    """A workload of two to four services; the first, and perhaps the second, is asked from outside."""
    names = ["web", "api", "db", "store"][: dice.randint(2, 4)]
    services: File = {}
    for index, name in enumerate(names):
        device = dice.choice(["cpu", "cpu", "far"])
        services[name] = {
            "device": device,
            "request": [_statement(dice, names[index + 1 :], device) for _ in range(dice.randint(1, 3))],
        }
        if index < dice.randint(1, 2):
            services[name]["arrivals"] = dice.choice([
                {"poisson": f"{dice.choice([30, 100, 300])} 1/s"},
                {"every": f"{dice.choice([5, 20])} ms"},
                {"bursts": {"poisson": "20 1/s", "size": 5}},
                {"clients": 6, "think": {"exponential": "20 ms"}},
            ])  # fmt: skip
        if dice.random() < 0.4:
            services[name]["workers"] = dice.randint(1, 6)
            if dice.random() < 0.5:
                services[name]["queue_limit"] = dice.randint(0, 10)
    return {"hwsim": "workload/1", "services": services, "requests": requests, "seed": dice.randint(0, 99)}


def _statement(dice: random.Random, others: list[str], device: str, depth: int = 0) -> File:
    kinds = ["busy", "busy", "drawn", "disk", "send", *(["ask", "ask"] if others else [])]
    kinds += ["maybe", "cache", "lock", "together", "repeat"] if depth < 2 else []
    match kind := dice.choice([*kinds, *([] if depth else ["choose"])]):
        case "busy":
            return busy(f"{dice.choice([0.2, 1, 3])} ms", device)
        case "drawn":
            return busy(dice.choice([{"exponential": "1 ms"}, {"uniform": ["1 ms", "2 ms"]}]), device)
        case "disk":
            return {"read": {"from": "disk", "bytes": dice.choice(["8 kB", "1 MB", {"exponential": "200 kB"}])}}
        case "send":
            return {"send": {"from": "cpu", "to": "far", "bytes": dice.choice(["10 kB", "2 MB"])}}
        case "ask":
            given = {"service": dice.choice(others), "times": dice.randint(1, 2)}
            if dice.random() < 0.5:
                given |= {"timeout": "8 ms", "retries": 2, "backoff": {"first": "1 ms", "jitter": "50 %"}, "refused": "retry"}
            return {"ask": given}
    inner = _statement(dice, others, device, depth + 1)
    wrapped: File = {
        "maybe": {"ratio": "50 %", "do": [inner]},
        "cache": {"hit": "50 %", "miss": [inner]},
        "lock": {"name": f"{dice.choice('ab')}{depth}", "do": [inner]},
        "choose": {f"a{dice.random()}": {"share": "30 %", "do": [inner]}, f"b{dice.random()}": {"share": "70 %"}},
        "together": [[inner], [busy("1 ms", device)]],
        "repeat": {"times": 2, "do": [inner]},
    }
    return {kind: wrapped[kind]}
