"""What parts of the library cannot exceed: one core, one socket's memory, a drive's slot, a card's power."""

from __future__ import annotations

from dataclasses import replace

import pytest

from hwsim import api as hwsim
from hwsim.demand import Cost
from hwsim.devices import Accesses, CannotCompute, Cpu, Work
from hwsim.devices.cpu_access import access_latency
from hwsim.devices.disk import Disk
from hwsim.devices.storage import Asked
from hwsim.spec import names
from published.parts import part

GB = 1e9
CPUS = tuple(name for name in names("cpu") if not name.startswith("d2l-"))


def alone(cpu: Cpu, cost: Cost) -> float:
    rates = {each.name: each.rate for each in cpu.capacities("it")}
    return cost.demand.alone(rates)


def test_every_real_cpu_says_what_one_core_reaches() -> None:
    assert len(CPUS) > 60
    parts = {name: part(Cpu, name) for name in CPUS}
    assert [name for name, cpu in parts.items() if cpu.core_rate() is None] == []
    assert [name for name, cpu in parts.items() if cpu.numa is None] == []
    assert [name for name, cpu in parts.items() if (cpu.core_rate() or 0.0) > cpu.memory.bandwidth] == []


@pytest.mark.parametrize(("name", "most"), [("graviton3", 30), ("epyc-7742", 30), ("a64fx", 60), ("apple-m1", 60)])
def test_one_core_does_not_stream_at_the_rate_of_the_socket(name: str, most: float) -> None:
    cpu = part(Cpu, name)
    one, all_ = (alone(cpu, cpu.compute("it", Work(reads=10 * GB, cores=cores))) for cores in (1, cpu.cores))
    assert 5 * GB < 10 * GB / one < most * GB
    assert all_ <= one


def test_one_core_is_held_by_what_it_reads_or_by_what_it_writes() -> None:
    cpu = part(Cpu, "jetson-nano")
    copy, clear = (alone(cpu, cpu.compute("it", Work(reads=reads, writes=GB, cores=1))) for reads in (GB, 0.0))
    assert GB / copy == pytest.approx(2.61 * 1.43 * GB, rel=0.01)
    assert GB / clear == pytest.approx(6.2 * 1.43 * GB, rel=0.01)
    why = [term.label for term in cpu.compute("it", Work(writes=GB, cores=1)).why]
    assert "stores of the cores" in why


@pytest.mark.parametrize("accesses", [Accesses(count=1e6, pattern="dependent", remote=0.5), Accesses(count=1e6, remote=0.5)])
def test_another_sockets_memory_is_never_ignored(accesses: Accesses) -> None:
    cpu = part(Cpu, "graviton3")
    with pytest.raises(CannotCompute) as caught:
        cpu.access("it", accesses)
    assert "another socket's memory" in caught.value.message
    assert "remote_latency" in (caught.value.hint or "")
    with pytest.raises(CannotCompute):
        cpu.compute("it", Work(reads=1e9, remote=0.5))
    cpu.access("it", replace(accesses, remote=0.0))


@pytest.mark.parametrize("name", ["dgx-a100", "dgx-h100", "p5.48xlarge"])
def test_servers_of_two_sockets_say_how_far_the_other_one_is(name: str) -> None:
    machine = hwsim.load_machine(name)
    cpu = machine.device("cpu0").model
    assert isinstance(cpu, Cpu)
    near, far = (access_latency(cpu, 4 * 2.0**30, remote=remote) for remote in (0.0, 1.0))
    assert 60e-9 <= far - near <= 120e-9


def test_lines_at_random_are_not_limited_by_what_two_chains_showed() -> None:
    cpu = part(Cpu, "apple-m1")
    assert cpu.caches.paired is not None
    assert cpu.caches.paired < 2
    two, many = (access_latency(cpu, 2.0**28, chains=chains) / chains for chains in (2, 16))
    assert many < two / 3
    at_random = alone(cpu, cpu.access("it", Accesses(count=1e6, pattern="random", working_set=2.0**30, cores=1)))
    assert at_random < access_latency(cpu, 2.0**30, chains=2) / 2 * 1e6 / 3


def test_a_disk_is_no_faster_than_its_interface() -> None:
    """10 GB through an interface of 1 GB/s: 10 s, whatever the flash reads."""
    waits = {"latency": "80 us", "write_latency": "20 us"}
    machine = {
        "hwsim": "machine/1",
        "parts": {"disk": {"kind": "ssd", "class": "ideal", "read": "3 GB/s", "write": "2 GB/s", "interface": "1 GB/s", **waits}},
    }
    for op in ({"read": {"from": "disk", "bytes": "10 GB"}}, {"write": {"to": "disk", "bytes": "10 GB"}}):
        assert hwsim.simulate(machine, {"hwsim": "workload/1", "program": [op]}).makespan_s == pytest.approx(10.0, rel=1e-4)


def test_a_disk_counts_accesses_of_its_iops_and_bytes_of_its_media() -> None:
    disk = Disk(read_bandwidth=2e9, latency=1e-4, iops=1e5)
    cost = disk.serve("d", "read", Asked(size=4096.0, times=1000, access="random", depth=32))
    assert {name: (amount, unit) for name, amount, unit in cost.moved} == {
        "d.iops": (1000, "1"), "d.media": (4096.0 * 1000, "B"),
    }  # fmt: skip
