"""Storage of the library: what the text, the data sheets and the tables of latencies say of it."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import pytest

from hwsim import api
from hwsim.demand import Cost
from hwsim.devices import CannotCompute, Storage
from hwsim.devices.arm import Seek
from hwsim.devices.flash import Endurance
from hwsim.devices.hdd import Hdd
from hwsim.devices.raid import Raid
from hwsim.devices.storage import Direction, StorageAccesses
from hwsim.devices.volume import Volume
from hwsim.spec import names
from tests.test_devices import NAME
from tests.test_storage import seconds


def library(name: str) -> tuple[Storage, Any]:
    machine = api.load_machine(f"hwsim: machine/1\nclass: ideal\nparts: {{it: {{kind: disk, use: {name}}}}}\n")
    return machine.device("it").model, machine  # type: ignore[return-value]


def took(name: str, direction: Direction = "read", **asked: Any) -> float:
    model, machine = library(name)
    cost: Cost = model.serve("it", direction, StorageAccesses(**asked))
    return cost.demand.alone(machine.rates())


def test_short_stroking_and_the_cache_of_a_hard_disk_show_in_a_region() -> None:
    whole, tenth = (took("hdd-7200rpm", size=4096, times=1000, access="random", region=part) for part in (16e12, 1.6e12))
    assert tenth < 0.8 * whole
    fits, spills = (
        took("hdd-7200rpm", size=65536, times=65536, access="sequential", region=part * 2**20) / 65536 for part in (128, 512)
    )
    assert fits < 0.5 * spills


def test_a_platter_gives_rate_and_size_of_its_disk() -> None:
    platter = "{outer: 46 mm, inner: 21 mm, density: 80 Mb/m, tracks: 400000, surfaces: 16}"
    seek = "{cylinders: 400000, track: 0.2 ms, average: 8 ms, full: 16 ms}"
    machine = api.load_machine(
        f"hwsim: machine/1\nclass: ideal\nparts: {{it: {{kind: hdd, rpm: 7200, seek: {seek}, platter: {platter}}}}}\n"
    )
    disk = machine.device("it").model
    assert isinstance(disk, Hdd)
    assert disk.rate(0.0) == pytest.approx(2 * math.pi * 0.046 * 10e6 * 120)
    assert disk.rate(1.0) == pytest.approx(disk.rate(0.0) * 21 / 46)
    assert disk.holds == pytest.approx(16 * 400_000 * math.pi * (0.046 + 0.021) * 10e6)


def test_a_cache_takes_writes_until_it_is_full() -> None:
    quick = 100e9 / took("nvme-980pro", "write", size=1e6, times=100_000)
    slow = 1000e9 / took("nvme-980pro", "write", size=1e6, times=1_000_000)
    assert quick == pytest.approx(5e9, rel=0.01)
    assert 2e9 < slow < 2.6e9


def test_a_gp2_volume_bursts_for_half_an_hour() -> None:
    """500 GiB: 1,500 a second at any time, 3,000 for 5.4 M / (3,000 - 1,500) = 3,600 s."""
    hour = took("ebs-gp2", size=16384, times=3000 * 3600, access="random", depth=256)
    assert hour == pytest.approx(3600)
    assert took("ebs-gp2", size=16384, times=3000 * 3600 + 1500, access="random", depth=256) == pytest.approx(hour + 1)
    empty = Volume(iops=100, burst_iops=3000, credits=5.4e6, bandwidth=1e9)
    cost = empty.serve("it", "read", StorageAccesses(size=4096, times=3000 * 5.4e6 / 2900, access="random", depth=256))
    assert cost.demand.alone({"it.media": 1.0}) == pytest.approx(5.4e6 / 2900)


def test_raid_writes_cost_one_access_a_copy_and_four_and_six_with_parities() -> None:
    hdd = Hdd(rpm=7200, seek=Seek(1000, 1e-3, 8e-3, 16e-3), outer=200e6, gain=0.0)
    asked = StorageAccesses(size=4096, times=8000, access="random", depth=1024)
    one = seconds(hdd, "write", replace(asked, times=1000))
    for level, accesses in ((0, 1), (1, 8), (10, 2), (5, 4), (6, 6)):
        assert seconds(Raid(level=level, members=8, hdd=hdd), "write", asked) == pytest.approx(accesses * one)  # type: ignore[arg-type]
    assert seconds(Raid(level=0, members=8, hdd=hdd), "read", replace(asked, depth=1)) == pytest.approx(8 * one)
    streams = {level: Raid(level=level, members=8, hdd=hdd).width("write") for level in (0, 1, 10, 5, 6)}
    assert streams == {0: 8, 1: 1, 10: 4, 5: 7, 6: 6}


def test_s3_reaches_its_bandwidth_with_many_requests_only() -> None:
    one = took("s3", size=8e6, times=100, access="random")
    assert 8e8 / one == pytest.approx(8e6 / (0.1 + 8e6 / 85e6))
    assert took("s3", size=8e6, times=100, access="random", depth=100) == pytest.approx(one / 100, rel=0.01)


def test_how_long_a_drive_lasts_is_said_with_every_write() -> None:
    model, _ = library("nvme-980pro")
    cost = model.serve("it", "write", StorageAccesses(size=1e6, times=1000))
    wear = next(term for term in cost.why if term.label == "wear")
    assert wear.inputs[0][1] == "33.3 h"  # 600 TB at 5 GB/s
    assert wear.seconds == 0
    assert Endurance(per_day=1.0, warranty=5 * 365 * 86400.0).bytes(1e12) == pytest.approx(1825e12)
    assert Endurance(cycles=3000.0).bytes(1e12, 3.0) == pytest.approx(1e15)
    assert Endurance(per_day=1.0).bytes(None) is None


def test_an_op_says_which_part_of_the_disk_it_uses_and_how_much_of_it_writes() -> None:
    machine = (
        "hwsim: machine/1\nclass: ideal\nparts: {cpu: {kind: cpu, use: d2l-laptop-cpu}, disk: {kind: disk, use: ssd-sm256e}}\n"
    )
    ops = "hwsim: workload/1\nprogram:\n"
    ops += "  - read: {from: disk, bytes: 4 KiB, times: 1000, access: random, depth: 8, write_share: %s}\n"
    reads, both = (api.simulate(machine, ops % share).makespan_s for share in ("0 %", "50 %"))
    assert both > 1.8 * reads
    with pytest.raises(CannotCompute, match="requires the size"):
        Hdd(rpm=7200, seek=Seek(1000, 1e-3, 8e-3, 16e-3), outer=1e8).serve(NAME, "read", StorageAccesses(size=1, region=1e6))


@pytest.mark.parametrize("name", [name.partition("/")[2] for name in names("part") if name.startswith("disk/")])
def test_every_disk_of_the_library_reads_and_writes(name: str) -> None:
    for direction in ("read", "write"):
        for how in ("sequential", "random"):
            found = took(name, direction, size=4096, times=100, access=how, depth=4)
            assert 0 < found < 100


@pytest.mark.parametrize("members", [4, 16])
def test_an_array_whose_members_idle_is_as_unsure_as_one_of_them(members: int) -> None:
    array = {"kind": "raid", "level": 0, "members": members, "hdd": {"use": "hdd-7200rpm"}}
    machine = {"hwsim": "machine/1", "parts": {"disk": array}}
    read = {"read": {"from": "disk", "bytes": "16 KiB", "times": 1000, "access": "random", "depth": 4}}
    found = api.simulate(machine, {"hwsim": "workload/1", "program": [read]}).interval
    assert found.low < 0.8 * found.value < 1.2 * found.value < found.high
