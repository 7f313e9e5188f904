"""The same bytes onto the same disk take the same time by every way that writes them, and off it by every way that reads them."""

from __future__ import annotations

from functools import cache
from typing import Any, Final

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

import hwsim
from hwsim import api
from hwsim.devices.storage import StorageAccesses
from hwsim.machine import Machine, TransferOptions
from hwsim.workload.checkpoint import checkpoint_ops
from hwsim.workload.programs import scope_of

DISKS: Final[dict[str, dict[str, Any]]] = yaml.safe_load("""
ssd: {kind: ssd, read: 7 GB/s, write: 1.4 GB/s, latency: 80 us, cache: {size: 2 GB, write: 6.9 GB/s, latency: 20 us}}
flash: {kind: ssd, use: nvme-670p}
hdd: {kind: hdd, use: barracuda-7200}
disk: {kind: disk, read: 1 GB/s, write: 500 MB/s, latency: 1 ms, write_latency: 2 ms}
volume: {kind: volume, iops: 3 kIOPS, bandwidth: 125 MB/s, byte_credits: 10 GB, burst_bandwidth: 1 GB/s, latency: 1 ms}
filesystem: {kind: filesystem, bandwidth: 10 GB/s, client: 3 GB/s, stream: 1 GB/s, latency: 1 ms}
raid: {kind: raid, level: 5, members: 4, ssd: {read: 7 GB/s, write: 1.4 GB/s, latency: 80 us}}
""")
NODES: Final = 70  # transfers of more pairs than this are looked up among pairs alike
CPU: Final = {"kind": "cpu", "cores": 4, "flop": {"fp32": "1 TFLOP/s"}, "memory": {"size": "64 GiB", "bandwidth": "100 GB/s"}}
BUS: Final = {"between": ["cpu", "disk"], "kind": "direct", "bandwidth": "20 GB/s", "latency": "1 us"}
kinds, places, sizes = st.sampled_from(sorted(DISKS)), st.integers(0, NODES - 1), st.floats(1e3, 1e11)


@cache
def cluster(kind: str) -> Machine:
    node = {"kind": "machine", "count": NODES, "parts": {"cpu": CPU, "disk": DISKS[kind]}, "links": [BUS]}
    wires = [{"between": ["node*.cpu", "switch"], "kind": "direct", "bandwidth": "10 GB/s"}]
    machine = api.load_machine({"hwsim": "machine/1", "parts": {"node": node, "switch": {"kind": "switch"}}, "links": wires})
    for place in range(NODES):
        machine.transfer(f"node{place}.cpu", "node0.cpu", 1e6)
    return machine


@given(kinds, places, sizes, st.booleans(), st.booleans())
def test_a_copy_asks_of_a_disk_what_a_read_or_a_write_does(
    kind: str, at: int, size: float, reads: bool, of_service: bool
) -> None:
    machine, disk, cpu, handling = cluster(kind), f"node{at}.disk", f"node{at}.cpu", TransferOptions(of_service=of_service)
    served = machine.serve(disk, "read" if reads else "write", StorageAccesses(size=size, of_service=of_service), cpu)
    copied = machine.transfer(*((disk, cpu) if reads else (cpu, disk)), size, handling)
    assert copied.requests == served.requests
    first, second = copied.demand, served.demand
    assert (first.latency, first.floor) == pytest.approx((second.latency, second.floor), rel=1e-12)
    assert dict(first.amounts) == pytest.approx(dict(second.amounts), rel=1e-12)
    assert (first.crowd, first.clocks) == (second.crowd, second.clocks)


@given(kinds, places, sizes)
def test_a_checkpoint_is_a_write(kind: str, at: int, size: float) -> None:
    machine, disk = cluster(kind), f"node{at}.disk"
    saved = checkpoint_ops(scope_of(machine, f"node{at}.cpu"), size, "", disk).write.cost
    count = max(1, round(size / 16e6))
    assert saved == machine.serve(disk, "write", StorageAccesses(size=size / count, times=count, depth=8), f"node{at}.cpu")


@settings(max_examples=20)
@given(kinds, st.integers(1, 4_000), st.sampled_from(["never", "always"]))
def test_runs_by_every_way_take_the_same_time(kind: str, megabytes: int, fold: Any) -> None:
    onto = (
        {"write": {"to": "disk", "bytes": f"{megabytes} MB"}},
        {"copy": {"from": "cpu", "to": "disk", "bytes": f"{megabytes} MB"}},
    )

    def seconds(work: dict[str, Any]) -> float:
        return hwsim.simulate(cluster(kind), {"hwsim": "workload/1", **work}, fold=fold, interval=False).makespan_s

    programs = [seconds({"program": {"each": ["node*"], "do": [do, {"wait": "all"}]}}) for do in onto]
    programs += [seconds({"program": {"each": "node69", "do": [do, {"wait": "all"}]}}) for do in onto]
    assert programs == pytest.approx(programs[:1] * len(programs), rel=1e-9)
    served = [
        seconds({"services": {"store": {"device": "node69.cpu", "arrivals": {"every": "1 ms"}, "request": [do]}}, "requests": 20})
        for do in onto
    ]
    assert served[0] == pytest.approx(served[1], rel=1e-9)


@pytest.mark.parametrize("ends", [("single", "disk"), ("disk", "single")])
def test_of_two_disks_a_copy_asks_for_single_requests_the_one_that_is_simulated_so(ends: tuple[str, str]) -> None:
    parts = {"disk": DISKS["ssd"], "single": {**DISKS["hdd"], "fidelity": "requests"}}
    machine = {"hwsim": "machine/1", "parts": parts, "links": [{**BUS, "between": [*ends]}]}
    copy = {"copy": {"from": ends[0], "to": ends[1], "bytes": "1 MB"}}
    run = hwsim.simulate(machine, {"hwsim": "workload/1", "program": [copy]}, interval=False)
    assert [request.device for request in run.requests] == ["single"]
    assert str(run.limited_by[0].cause) == "requests on single"
