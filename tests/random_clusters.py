"""Random valid pairs of a cluster and jobs on it, with events: nodes with CPUs, GPUs, disks and cards of their own.

Nodes of a family are equal, and may have GPUs of two kinds, and a plain disk, an SSD or a volume; jobs stand on one node, on
GPUs or on every node, begin late, and read, compute and send, or serve requests as they come or as a trace has them; parts, links
and services slow down and fail meanwhile, several at once.
"""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any, Final

from tests.random_pairs import File, Pair, quantity

TRACE: Final = str(Path(__file__).parent / "keys/examples/trace.csv")


def random_cluster_pair(dice: random.Random) -> Pair:
    """A cluster, its jobs and what happens to it."""
    machine, nodes = random_cluster(dice)
    jobs = {f"job{number}": _job(dice, machine, nodes) for number in range(dice.randint(1, 3))}
    if all("services" in job for job in jobs.values()):  # nobody else may use cores that serve in turn
        for family in dict.fromkeys(node.rstrip("0123456789") for node in nodes):
            machine["parts"][family]["parts"]["cpu"]["serves"] = dice.choice(["shared", "fifo"])
    events = _events(dice, machine, nodes, [name for name, job in jobs.items() if "services" in job])
    return Pair(machine, {"hwsim": "workload/1", "name": "random jobs", "jobs": jobs, "events": events})


def random_cluster(dice: random.Random) -> tuple[File, list[str]]:
    """A cluster of one or two families of nodes, and the names of its nodes."""
    families = {"node": dice.randint(2, 3)} | ({"old": dice.randint(1, 2)} if dice.random() < 0.4 else {})
    parts: File = {family: _node(dice, count) for family, count in families.items()}
    switch: File = {"kind": "switch"}
    match dice.randint(0, 2):
        case 0:
            switch["oversubscription"] = 2
        case 1:
            switch["bandwidth"] = quantity(dice, 1e8, 1e10, "B/s")
        case _:
            pass
    parts["sw"] = switch
    rate = quantity(dice, 1e8, 1e10, "B/s")
    links = [
        {"name": f"{family}-wire", "between": [f"{family}*.nic", "sw"], "kind": "direct", "bandwidth": rate, "latency": "2 us"}
        for family in families
    ]
    names = [f"{family}{number}" for family, count in families.items() for number in range(count)]
    return {"hwsim": "machine/1", "class": "ideal", "name": "a random cluster", "parts": parts, "links": links}, names


def _node(dice: random.Random, count: int) -> File:
    gpus = dice.randint(1, 3)
    cpu: File = {
        "kind": "cpu", "cores": dice.randint(1, 4),
        "flop": {"fp32": quantity(dice, 1e10, 1e13, "FLOP/s")},
        "memory": {"size": "64 GiB", "bandwidth": quantity(dice, 1e9, 1e11, "B/s")},
    }  # fmt: skip
    gpu = {
        "kind": "gpu", "count": gpus, "launch": dice.choice(["0 s", "4 us"]),
        "flop": {"fp32": quantity(dice, 1e11, 1e14, "FLOP/s")},
        "memory": {"size": "64 GiB", "bandwidth": quantity(dice, 1e10, 1e12, "B/s")},
    }  # fmt: skip
    rates = {"read": quantity(dice, 1e8, 1e10, "B/s"), "write": quantity(dice, 1e8, 1e10, "B/s"), "latency": "10 us"}
    disk = dice.choice(
        [
            {"kind": "disk", **rates},
            {"kind": "disk", **rates},
            {"kind": "ssd", "use": "nvme-980pro"},
            {"kind": "volume", "use": "ebs-gp3", "size": "2 TB"},
        ]
    )  # fmt: skip  (no hdd: what a request waits for its platter is drawn by the name of the part)
    parts = {"cpu": cpu, "gpu": gpu, "disk": disk, "nic": {"kind": "nic", "bandwidth": quantity(dice, 1e8, 1e10, "B/s")}}
    lanes: list[File] = []
    if dice.random() < 0.3:  # a GPU of another kind beside them
        parts["acc"] = {**gpu, "count": 1, "flop": {"fp32": quantity(dice, 1e11, 1e14, "FLOP/s")}}
        lanes = [{"name": "lane", "between": ["cpu", "acc"], "kind": "direct", "bandwidth": quantity(dice, 1e9, 1e11, "B/s")}]
    return {
        "kind": "machine", "count": count, "parts": parts,
        "links": [
            *lanes,
            {"name": "slot", "between": ["cpu", "gpu*"], "kind": "direct", "bandwidth": quantity(dice, 1e9, 1e11, "B/s")},
            {"name": "cable", "between": ["cpu", "disk"], "kind": "direct", "bandwidth": quantity(dice, 1e8, 1e10, "B/s")},
            {"name": "card", "between": ["cpu", "nic"], "kind": "direct", "bandwidth": "100 GB/s"},
        ],
    }  # fmt: skip


def _job(dice: random.Random, machine: File, nodes: list[str]) -> File:
    job: File = {}
    if dice.random() < 0.5:
        job["start"] = quantity(dice, 1e-6, 1e-2, "s")
    if dice.random() < 0.4:
        job["runtime"] = {"dispatch": "20 us", "return": "5 us"}
    node = dice.choice(nodes)
    parts = machine["parts"][node.rstrip("0123456789")]["parts"]
    gpu = dice.choice([*(f"gpu{index}" for index in range(parts["gpu"]["count"])), *(["acc"] if "acc" in parts else [])])
    match dice.choice(["here", "named", "each", "gpus", "pipeline", "train", "services"]):
        case "here":  # names are its node's
            return {**job, "device": node, "program": _body(dice, "", gpu, "")}
        case "named":  # names are in full, and the program finds its host
            return {**job, "program": _body(dice, f"{node}.", gpu, "")}
        case "each":
            return {**job, "program": {"each": ["node*"], "do": _body(dice, "", "gpu0", "")}}
        case "gpus":
            return {**job, "program": {"each": ["node*.gpu*"], "do": [*_body(dice, "", "", "allreduce"), {"wait": "all"}]}}
        case "train":
            model = {"model": "mlp-mnist", "device": f"{node}.gpu*", "global_batch": 96, "steps": 2}
            return {"train": model, **({"start": job["start"]} if "start" in job else {})}
        case "services":
            job.pop("runtime", None)
            return {**job, "requests": 50, "services": {"web": _service(dice, node, gpu)}}
        case _:
            stages = [
                {"read": {"from": f"{node}.disk", "bytes": quantity(dice, 1e4, 1e7, "B")}},
                {"busy": {"device": f"{node}.cpu", "time": quantity(dice, 1e-5, 1e-3, "s"), "workers": dice.randint(1, 3)}},
                {"copy": {"from": f"{node}.cpu", "to": f"{node}.{gpu}", "bytes": quantity(dice, 1e4, 1e7, "B")}},
                {"busy": {"device": f"{node}.{gpu}", "time": quantity(dice, 1e-5, 1e-3, "s")}},
            ]
            job.pop("runtime", None)
            return {**job, "pipeline": {"batches": dice.randint(2, 20), "ahead": dice.randint(1, 3), "stages": stages}}


def _service(dice: random.Random, node: str, gpu: str) -> File:
    """Requests that compute, read and copy on a node, named in full or as it calls its parts."""
    arrivals = dice.choice([{"every": "100 us"}, {"poisson": "5000 1/s"}, {"trace": TRACE}])
    prefix, device = dice.choice([(f"{node}.", {}), ("", {"device": f"{node}.cpu"})])
    request = [
        {"busy": {"device": f"{prefix}cpu", "time": quantity(dice, 1e-6, 1e-4, "s")}},
        {"read": {"from": f"{prefix}disk", "bytes": quantity(dice, 1e3, 1e5, "B")}},
        {"copy": {"from": f"{prefix}cpu", "to": f"{prefix}{gpu}", "bytes": quantity(dice, 1e3, 1e5, "B")}},
    ]
    return {**device, "arrivals": arrivals, "request": request}


def _body(dice: random.Random, node: str, gpu: str, collective: str) -> list[File]:
    """Statements on one node (its name with a dot, or "" for $self's), on $self alone where no GPU is named."""
    cpu, disk, device = f"{node}cpu", f"{node}disk", f"{node}{gpu}" if gpu else "$self"
    statements: list[File] = []
    for _ in range(dice.randint(1, 5)):
        keys: File = {dice.choice(["reads", "updates"]): dice.choice("xy")} if dice.random() < 0.5 else {}
        here = dice.choice([cpu, device])
        match dice.choice(["busy", "compute", "elementwise", "copy", "read", "write", collective or "busy", "wait"]):
            case "busy":
                statements.append({"busy": {"device": here, "time": quantity(dice, 1e-6, 1e-3, "s"), **keys}})
            case "compute":
                statements.append({"compute": {"device": here, "flop": quantity(dice, 1e5, 1e10, "FLOP"), **keys}})
            case "elementwise":
                statements.append({"elementwise": {"device": here, "count": dice.choice([1000, 10**6]), **keys}})
            case "copy":
                ends = dice.sample([cpu, device], 2)
                statements.append({"copy": {"from": ends[0], "to": ends[1], "bytes": quantity(dice, 1, 1e8, "B"), **keys}})
            case "read":
                statements.append({"read": {"from": disk, "bytes": quantity(dice, 1e3, 1e7, "B"), **keys}})
            case "write":
                statements.append({"write": {"to": disk, "bytes": quantity(dice, 1e3, 1e7, "B"), **keys}})
            case "allreduce":
                among = {"among": ["node*.gpu*"], "bytes": quantity(dice, 1e3, 1e7, "B"), "algorithm": "ring"}
                statements.append({"allreduce": {**among, **keys}})
            case _:
                statements.append({"wait": "all"})
    return [{"repeat": {"times": dice.randint(1, 6), "do": statements}}]


def _events(dice: random.Random, machine: File, nodes: list[str], serving: list[str]) -> list[File]:
    """What happens to parts, links and the services of jobs: one thing after another, or several at once."""
    stops = range(dice.randint(0, 2) if serving else 0)
    events: list[Any] = [
        {"at": quantity(dice, 1e-6, 1e-2, "s"), "service": f"{dice.choice(serving)}.web", "down": quantity(dice, 1e-4, 1e-2, "s")}
        for _ in stops
    ]
    for _ in range(dice.randint(0, 3)):
        node = dice.choice(nodes)
        family = machine["parts"][node.rstrip("0123456789")]["parts"]
        parts = ["cpu", "gpu0", "gpu*", "disk", "nic", *(name for name in ("acc",) if name in family)]
        part = dice.choice([*(f"{node}.{device}" for device in parts), "node*.cpu", "sw"])
        links = ["slot", "cable", "card", *(link["name"] for link in machine["links"])]
        where = {"part": part} if dice.random() < 0.7 else {"link": dice.choice(links)}
        lasting = quantity(dice, 1e-4, 1e-1, "s")
        what = {"down": lasting} if dice.random() < 0.5 else {"speed": f"{dice.randint(5, 95)} %", "for": lasting}
        events.append({"at": quantity(dice, 1e-6, 1e-2, "s"), **where, **what})
    return events
