"""A program runs on the host of the devices that it names; where several nodes could be, the file says which or is refused."""

from __future__ import annotations

from typing import Any

import pytest

import hwsim
from hwsim import api
from hwsim.spec import SpecError, tree_of
from hwsim.workload.programs import scope_among

CPU = {"kind": "cpu", "cores": 1, "flop": {"fp32": "1 TFLOP/s"}, "memory": {"size": "64 GiB", "bandwidth": "100 GB/s"}}
GPU = {"kind": "gpu", "flop": {"fp32": "10 TFLOP/s"}, "memory": {"size": "64 GiB", "bandwidth": "1 TB/s"}, "launch": "0 s"}
NODE: Any = {
    "kind": "machine",
    "count": 2,
    "parts": {
        "cpu": CPU,
        "gpu": GPU,
        "disk": {"kind": "disk", "read": "5 GB/s", "write": "5 GB/s", "latency": "0 s"},
        "nic": {"kind": "nic", "bandwidth": "1 Gb/s"},
    },
    "links": [
        {"between": ["cpu", "gpu"], "kind": "pcie", "bandwidth": "16 GB/s"},
        {"between": ["cpu", "disk"], "kind": "direct", "bandwidth": "10 GB/s"},
        {"between": ["cpu", "nic"], "kind": "direct", "bandwidth": "10 GB/s"},
    ],
}
TWO: Any = {
    "hwsim": "machine/1",
    "class": "ideal",
    "parts": {"node": NODE, "sw": {"kind": "switch"}},
    "links": [{"name": "wire", "between": ["node*.nic", "sw"], "kind": "direct", "bandwidth": "125 MB/s"}],
}
READ = {"read": {"from": "node1.disk", "bytes": "1 GB"}}  # 0.2 s there, 8 s over the wire


def seconds(**workload: Any) -> float:
    return hwsim.simulate(TWO, {"hwsim": "workload/1", **workload}).timeline.makespan


def starts(node: str) -> dict[str, Any]:
    """A program whose thread, on a server of one core, takes 100 ms to issue what takes next to nothing."""
    loop = {"repeat": {"times": 100, "do": [{"busy": {"device": f"{node}.gpu", "time": "1 us"}}]}}
    return {"runtime": {"dispatch": "1 ms"}, "program": [loop]}


def test_two_servers_issue_side_by_side() -> None:
    both = {"a": starts("node0"), "b": starts("node1")}
    assert seconds(jobs=both) == pytest.approx(0.1, rel=1e-3)
    slow = [{"at": "0 s", "part": "node1.cpu", "speed": "10 %"}]
    assert seconds(jobs={"b": both["b"]}, events=slow) == pytest.approx(1.0, rel=1e-3)
    assert seconds(jobs={"a": both["a"]}, events=slow) == pytest.approx(0.1, rel=1e-3)


@pytest.mark.parametrize(
    "workload",
    [
        {"program": [READ]},
        {"programs": {"a": [READ], "b": [{"read": {"from": "node0.disk", "bytes": "1 GB"}}]}},
        {"pipeline": {"batches": 1, "stages": [READ]}},
        {"jobs": {"b": {"device": "node1", "program": [{"read": {"from": "disk", "bytes": "1 GB"}}]}}},
        {"jobs": {"b": {"device": "node1", "pipeline": {"batches": 1, "stages": [{"read": {"from": "disk", "bytes": "1 GB"}}]}}}},
        {"program": {"each": "node*", "do": [{"read": {"from": "disk", "bytes": "1 GB"}}]}},
        {"services": {"x": {"arrivals": {"every": "1 s"}, "request": [READ]}}, "requests": 1},
        {"jobs": {"b": {"device": "node1.cpu", "requests": 1, "services": {
            "x": {"arrivals": {"every": "1 s"}, "request": [{"read": {"from": "disk", "bytes": "1 GB"}}]}}}}},
    ],
)  # fmt: skip
def test_a_disk_is_read_into_the_memory_of_its_own_node(workload: dict[str, Any]) -> None:
    run = hwsim.simulate(TWO, {"hwsim": "workload/1", **workload})
    assert max(run.timeline.makespan, 0.2) == pytest.approx(0.2, rel=1e-2)
    assert not any(row.busy_fs for row in run.usage if row.capacity.startswith("wire"))


@pytest.mark.parametrize(
    "also", [{"runtime": {"dispatch": "1 us"}}, {"program": [READ, {"write": {"to": "node0.disk", "bytes": "1 MB"}}]}]
)
def test_devices_of_several_nodes_leave_the_host_open(also: dict[str, Any]) -> None:
    copy = {"copy": {"from": "node0.cpu", "to": "node1.cpu", "bytes": "125 MB"}}
    assert seconds(program=[copy]) == pytest.approx(1.0, rel=1e-3)  # nothing hangs on it
    with pytest.raises(SpecError, match=r"its devices have node[01]\.cpu, node[01]\.cpu") as refused:
        seconds(**{"program": [copy], **also})
    assert "`each: node" in str(refused.value)
    stated = {"each": "node0", "do": [copy]}
    assert seconds(**{**also, "program": stated}) == pytest.approx(1.0, rel=1e-3)


@pytest.mark.parametrize(
    ("named", "host", "hosts"),
    [("store", "node1.cpu", ()), ("head", "node1.cpu", ("node1.cpu", "head")), ("node1.gpu", "node1.cpu", ())],
)
def test_what_lies_outside_of_a_node_is_no_second_host_unless_it_is_a_cpu(named: str, host: str, hosts: tuple[str, ...]) -> None:
    outside = {"head": CPU, "store": NODE["parts"]["disk"]}
    wires = [{"between": [part, "sw"], "kind": "direct", "bandwidth": "125 MB/s"} for part in outside]
    machine = api.load_machine({**TWO, "parts": {**TWO["parts"], **outside}, "links": [*TWO["links"], *wires]})
    statements = [{"busy": {"device": "node1.disk", "time": "1 s"}}, {"busy": {"device": named, "time": "1 s"}}]
    scope = scope_among(machine, (tree_of(statements),))
    assert (scope.host, scope.hosts) == (host, hosts)


def test_of_the_sockets_of_a_node_the_nearest_works_for_a_device() -> None:
    machine = api.load_machine("dgx-a100")
    hosts = {machine.host_of(gpu) for gpu in machine.devices_of("gpu")}
    assert hosts == set(machine.devices_of("cpu"))
    assert all(machine.host_of(cpu) == cpu for cpu in hosts)


@pytest.mark.parametrize(
    "workload",
    [
        {"train": {"model": "mlp-mnist", "global_batch": 4096, "threads": "one"}},
        {"pipeline": {
            "each": "gpu*", "batch": 2, "epochs": 2, "dataset": {"samples": 64, "bytes": "1 GB"}, "cache": {"bytes": "500 GB"},
            "stages": [{"read": {"from": "disk0"}}],
        }},
    ],
)  # fmt: skip
def test_sockets_of_one_node_are_one_host_for_what_belongs_to_all_of_it(workload: dict[str, Any]) -> None:
    """One thread for all GPUs stays one; a page cache that holds what the node reads, not what each socket does."""
    run = hwsim.simulate("dgx-a100", {"hwsim": "workload/1", **workload})
    if "train" in workload:
        threads = {queue.device for queue in run.timeline.flat.graph.queues if queue.name.endswith(".host")}
        assert threads == {"cpu0"}
    else:
        assert next(row.moved for row in run.usage if row.capacity == "disk0.media") < 1.1 * 64e9
