"""Random valid pairs of a machine and a workload, as the mappings that their files would hold.

Three shapes: a server (CPU, disk, switch, up to four GPUs) with any program; a star of accelerators of two kinds, linked
unequally, with a program on each and collectives; a server that reads, decodes, copies and trains batch after batch.
"""

from __future__ import annotations

import math
import random
from typing import Any, NamedTuple

File = dict[str, Any]


class Pair(NamedTuple):
    """What `hwsim.simulate` takes."""

    machine: File
    workload: File


def random_pair(dice: random.Random) -> Pair:
    """One of the three shapes."""
    match dice.choice(["server", "server", "star", "star", "pipeline"]):
        case "star":
            machine = random_star(dice)
            return Pair(machine, random_ranks(dice))
        case "pipeline":
            machine = random_machine(dice, least=1)
            return Pair(machine, random_pipeline(dice))
        case _:
            machine = random_machine(dice)
            return Pair(machine, random_workload(dice, machine["parts"].get("gpu", {}).get("count", 0)))


def quantity(dice: random.Random, low: float, high: float, unit: str) -> str:
    """A value between two others, each order of magnitude equally likely."""
    return f"{math.exp(dice.uniform(math.log(low), math.log(high))):.4g} {unit}"


# ---------------------------------------------------------------- machines


def random_machine(dice: random.Random, least: int = 0) -> File:
    """A server."""
    gpus = dice.randint(least, 4)
    parts: File = {
        "cpu": {
            "kind": "cpu", "cores": dice.randint(1, 8), "flop": {"fp32": quantity(dice, 1e10, 1e13, "FLOP/s")},
            "random": quantity(dice, 1e6, 1e9, "1/s"),
            "memory": {"size": "16 GiB", "bandwidth": quantity(dice, 1e9, 1e11, "B/s")},
        },
        "psw": {"kind": "switch"},
        "disk": {
            "kind": "disk", "read": quantity(dice, 1e8, 1e10, "B/s"), "write": quantity(dice, 1e8, 1e10, "B/s"),
            "latency": quantity(dice, 1e-6, 1e-2, "s"),
        },
    }  # fmt: skip
    links: list[File] = [
        {"name": "slot", "between": ["cpu", "psw"], "kind": "pcie", "bandwidth": quantity(dice, 1e9, 1e11, "B/s")},
        {
            "name": "cable",
            "between": ["cpu", "disk"],
            "kind": "direct",
            "bandwidth": quantity(dice, 1e8, 1e10, "B/s"),
            "latency": "1 us",
        },
    ]
    if gpus:
        parts["gpu"] = {
            "kind": "gpu", "count": gpus, "flop": {"fp32": quantity(dice, 1e11, 1e14, "FLOP/s")},
            "random": quantity(dice, 1e6, 1e9, "1/s"),
            "memory": {"size": "16 GiB", "bandwidth": quantity(dice, 1e10, 1e12, "B/s")},
            "launch": dice.choice(["0 s", "4 us"]),
        }  # fmt: skip
        links.append({"name": "gpus", "between": ["psw", "gpu*"], "kind": "pcie", "bandwidth": quantity(dice, 1e9, 1e11, "B/s")})
    return {"hwsim": "machine/1", "class": "ideal", "name": "a random server", "parts": parts, "links": links}


def random_star(dice: random.Random) -> File:
    """Accelerators of two kinds around a switch."""
    parts: File = {"switch": {"kind": "switch"}}
    links: list[File] = []
    for name, count in (("old", dice.randint(1, 3)), ("new", dice.randint(1, 3))):
        parts[name] = {
            "kind": "gpu", "count": count, "flop": {"fp32": quantity(dice, 1e11, 1e14, "FLOP/s")},
            "memory": {"size": "16 GiB", "bandwidth": quantity(dice, 1e10, 1e12, "B/s")},
        }  # fmt: skip
        links.append(
            {
                "name": f"{name}-ports", "between": ["switch", f"{name}*"], "kind": "direct",
                "bandwidth": quantity(dice, 1e8, 1e11, "B/s"), "latency": quantity(dice, 1e-7, 1e-4, "s"),
            }
        )  # fmt: skip
    return {"hwsim": "machine/1", "class": "ideal", "name": "a random star", "parts": parts, "links": links}


# ---------------------------------------------------------------- workloads


def random_workload(dice: random.Random, gpus: int) -> File:
    """Any program on a server: loops, waits, values that ops share, a runtime, two programs that meet."""
    devices = ["cpu", *(f"gpu{number}" for number in range(gpus))]
    workload: File = {"hwsim": "workload/1", "name": "a random program"}
    if dice.random() < 0.5:
        workload["runtime"] = {"dispatch": "10 us", "return": "5 us", "queue_depth": dice.randint(1, 20)}
    if dice.random() < 0.3:
        workload["programs"] = {name: [*_body(dice, devices), {"barrier": "b"}] for name in ("one", "two")}
    else:
        workload["program"] = _body(dice, devices)
    return workload


def _body(dice: random.Random, devices: list[str], depth: int = 0) -> list[File]:
    statements: list[File] = []
    for _ in range(dice.randint(1, 4)):
        chance = dice.random()
        if chance < 0.2 and depth < 2:
            statements.append({"repeat": {"times": dice.randint(0, 12), "do": _body(dice, devices, depth + 1)}})
        elif chance < 0.3:
            statements.append({"wait": "all"})
        else:
            statements.append(_op(dice, devices))
    return statements


def _op(dice: random.Random, devices: list[str]) -> File:
    keys: File = {}
    for access in ("reads", "writes", "updates"):
        if dice.random() < 0.3:
            keys[access] = dice.choice(["x", "y", "z"])
    if dice.random() < 0.1:
        keys["block"] = True
    device = dice.choice(devices)
    match dice.choice(["busy", "matmul", "elementwise", "reduce", "random", "compute", "copy", "read", "write"]):
        case "busy":
            return {"busy": {"device": device, "time": quantity(dice, 1e-9, 1e-3, "s"), **keys}}
        case "matmul":
            return {"matmul": {"device": device, "m": dice.randint(1, 999), "n": 64, "k": dice.randint(1, 999), **keys}}
        case "compute":
            return {"compute": {"device": device, "flop": quantity(dice, 1, 1e12, "FLOP"), "pieces": dice.randint(1, 3), **keys}}
        case "copy":
            return {"copy": {"from": device, "to": dice.choice(devices), "bytes": quantity(dice, 1, 1e9, "B"), **keys}}
        case "read":
            return {"read": {"from": "disk", "bytes": "4 KiB", "times": dice.randint(1, 99), "access": "random", **keys}}
        case "write":
            return {"write": {"to": "disk", "bytes": quantity(dice, 1, 1e9, "B"), **keys}}
        case kind:
            return {kind: {"device": device, "count": dice.choice([1, 1000, 10**6]), **keys}}


def random_ranks(dice: random.Random) -> File:
    """The same program on every accelerator of a star, with collectives among all of them, hidden or not."""
    statements: list[File] = []
    for number in range(dice.randint(1, 4)):
        statements.append({"busy": {"name": f"step {number}", "time": quantity(dice, 1e-6, 1e-3, "s"), "updates": "x"}})
        if dice.random() < 0.4:
            statements.append({"compute": {"flop": quantity(dice, 1e6, 1e10, "FLOP"), "updates": "x"}})
        if dice.random() < 0.8:
            kind = dice.choice(["allreduce", "allgather", "reduce-scatter", "alltoall", "broadcast"])
            keys: File = {"among": ["old*", "new*"], "bytes": quantity(dice, 1e3, 1e8, "B"), "algorithm": "ring"}
            if kind == "alltoall":
                keys["algorithm"] = "direct"
            if kind == "broadcast":
                del keys["algorithm"]
            keys |= {dice.choice(["reads", "updates"]): "x"}
            statements.append({kind: keys})
    loop = {"repeat": {"times": dice.randint(1, 6), "do": statements}}
    return {"hwsim": "workload/1", "name": "random ranks", "program": {"each": ["old*", "new*"], "do": [loop, {"wait": "all"}]}}


def random_pipeline(dice: random.Random) -> File:
    """Batches that are read, decoded, copied and trained on."""
    return {
        "hwsim": "workload/1",
        "name": "a random pipeline",
        "pipeline": {
            "batches": dice.randint(1, 60),
            "ahead": dice.randint(1, 5),
            "stages": [
                {
                    "read": {
                        "from": "disk", "bytes": quantity(dice, 1e3, 1e6, "B"), "times": dice.randint(1, 64), "access": "random",
                    }
                },
                {
                    "busy": {
                        "name": "decode", "device": "cpu", "time": quantity(dice, 1e-5, 1e-2, "s"),
                        "times": dice.randint(1, 16), "workers": dice.randint(1, 8),
                    }
                },
                {"copy": {"from": "cpu", "to": "gpu0", "bytes": quantity(dice, 1e4, 1e8, "B")}},
                {"busy": {"name": "train", "device": "gpu0", "time": quantity(dice, 1e-4, 1e-1, "s")}},
            ],
        },
    }  # fmt: skip
