"""Parts of the library: what none can exceed, and those that use another say only what is their own."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from functools import cache
from itertools import permutations

import pytest

from hwsim import api as hwsim
from hwsim.demand import Cost
from hwsim.devices import Accesses, CannotCompute, Cpu, Work
from hwsim.devices.cpu_access import access_latency
from hwsim.devices.disk import Disk
from hwsim.devices.storage import StorageAccesses
from hwsim.spec import Mistakes, Tree, find, names, read, resolve, sources
from published.parts import part
from tests.each import each

GB = 1e9
CPUS = tuple(name for name in names("cpu") if not name.startswith("d2l-"))


def alone(cpu: Cpu, cost: Cost) -> float:
    rates = {capacity.name: capacity.rate for capacity in cpu.capacities("it")}
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
    assert "remote memory" in caught.value.message
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
    cost = disk.serve("d", "read", StorageAccesses(size=4096.0, times=1000, access="random", depth=32))
    assert {name: (amount, unit) for name, amount, unit in cost.moved} == {
        "d.iops": (1000, "1"), "d.media": (4096.0 * 1000, "B"),
    }  # fmt: skip


PARTS = names("part")
IN_COMMON = 0.7  # of the numbers of a part: with more it is the other with changes


def used(name: str) -> str | None:
    """The part a part uses, as `gpu/v100`."""
    kind, _, part = name.partition("/")
    base = read(find(kind, part)).text("use")
    return base and f"{kind}/{base}"


@cache
def numbers(name: str) -> dict[str, tuple[str, str]]:
    """Path of each number of a part, all that it uses filled in -> the number and where it is from."""
    kind, _, part = name.partition("/")
    tree, mistakes = read(find(kind, part)), Mistakes()
    whole = resolve(tree, mistakes, kind=tree.text("kind") or kind)
    mistakes.raise_if_any()
    return told(whole)


def told(tree: Tree) -> dict[str, tuple[str, str]]:
    return {path: (str(value_at(tree, path).plain()), str(origin)) for path, origin in sources(tree).items()}


def value_at(tree: Tree, path: str) -> Tree:
    """The number at a path of `sources`; keys may hold dots (`1.5`), elements of lists go by place."""
    if not path:
        return tree.get("value") or tree
    listed = enumerate(tree.elements() if tree.is_list else ())
    for key, child in (*tree.items(), *((member.text("name") or str(index), member) for index, member in listed)):
        if path == key or path.startswith(f"{key}."):
            return value_at(child, path[len(key) + 1 :])
    raise KeyError(path)


def repeated(own: dict[str, tuple[str, str]], base: dict[str, tuple[str, str]]) -> list[str]:
    return [path for path, number in own.items() if base.get(path) == number]


def root(name: str) -> str:
    return root(base) if (base := used(name)) else name


def near(one: dict[str, tuple[str, str]], other: dict[str, tuple[str, str]]) -> bool:
    """Whether `one` had better be written as `other` with changes; what uses another can take no key of it away."""
    return other.keys() <= one.keys() and len(other) >= 10 and len(one.items() & other.items()) > IN_COMMON * len(one)


@each("name", [name for name in PARTS if used(name)])
def test_a_part_that_uses_another_says_only_what_is_its_own(name: str) -> None:
    kind, _, part = name.partition("/")
    base = used(name)
    assert base is not None
    assert repeated(told(read(find(kind, part))), numbers(base)) == []


def test_no_two_parts_are_nearly_the_same_without_saying_so() -> None:
    roots = {name: root(name) for name in PARTS}
    pairs = [(one, other) for one, other in permutations(PARTS, 2) if one.partition("/")[0] == other.partition("/")[0]]
    assert [(one, other) for one, other in pairs if roots[one] != roots[other] and near(numbers(one), numbers(other))] == []


def test_every_gpu_that_is_sold_says_what_links_it_has() -> None:
    """So that a card without NVLinks or of an older PCI Express, put in the place of another, is not a faster machine."""
    cards = [name for name in PARTS if name.startswith("gpu/") and not name.startswith("gpu/d2l-")]
    assert [name for name in cards if "nvlinks" not in numbers(name)] == []
    without = {name for name in cards if "pcie" not in numbers(name)}
    assert without == {
        "gpu/iris-pro-580",
        "gpu/tpu-v4",
        "gpu/tpu-v5e",
        "gpu/tpu-v5p",
        "gpu/tpu-v6e",
    }  # on the chip, or not published


def test_families_are_shallow() -> None:
    """A reader opens few files: the base, and seldom the base of the base."""
    depth = Counter(steps(name) for name in PARTS)
    assert max(depth) <= 3, depth


def steps(name: str) -> int:
    return 1 + steps(base) if (base := used(name)) else 0
