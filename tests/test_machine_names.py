"""Names: what a file may write, and what it means."""

from __future__ import annotations

import pytest

from hwsim.api import load_machine
from hwsim.formats import natural
from hwsim.machine import Machine, UnknownName

CPU = "kind: cpu, cores: 2, flop: {fp32: 1 GFLOP/s}, memory: {bandwidth: 1 GB/s}"
GPU = "kind: gpu, flop: {fp32: 1 TFLOP/s}, memory: {bandwidth: 1 TB/s}"
NODE = f"kind: machine, parts: {{cpu: {{{CPU}, count: 2}}, gpu: {{{GPU}, count: 4}}, nic: {{kind: nic, bandwidth: 1 GB/s}}}}"


def machine(parts: str) -> Machine:
    return load_machine("hwsim: machine/1\nclass: ideal\nparts:\n" + parts)


@pytest.fixture(scope="module")
def server() -> Machine:
    return machine(
        f"  cpu: {{{CPU}}}\n  gpu: {{{GPU}, count: 12}}\n  one: {{{GPU}, count: 1}}\n"
        "  ssd: {kind: disk, read: 1 GB/s}\n  hdd: {kind: disk, read: 1 GB/s}\n"
    )


@pytest.fixture(scope="module")
def cluster() -> Machine:
    return machine(f"  node: {{{NODE}, count: 12}}\n  lustre: {{kind: disk, read: 1 GB/s}}\n  sw: {{kind: switch}}\n")


@pytest.mark.parametrize(
    ("pattern", "names"),
    [
        ("cpu", "cpu"),
        ("cpu*", "cpu"),  # a lone part is its family
        ("gpu3", "gpu3"),
        ("gpu9..11", "gpu9 gpu10 gpu11"),
        ("one", "one0"),  # the only part of that name
        ("one*", "one0"),
        (["gpu1", "cpu", "gpu0..1"], "gpu1 cpu gpu0"),
        ("disk*", "hdd ssd"),  # no family of that name: all parts of that kind
    ],
)
def test_names_at_the_top(server: Machine, pattern: str | list[str], names: str) -> None:
    assert " ".join(server.select(pattern)) == names


@pytest.mark.parametrize(
    ("pattern", "inside", "names"),
    [
        ("node1.gpu0", "", "node1.gpu0"),
        ("node0..1.gpu2..3", "", "node0.gpu2 node0.gpu3 node1.gpu2 node1.gpu3"),
        ("node*.nic", "", " ".join(f"node{n}.nic" for n in range(12))),
        ("gpu*", "node1", "node1.gpu0 node1.gpu1 node1.gpu2 node1.gpu3"),
        ("node1.gpu*", "node0", "node1.gpu0 node1.gpu1 node1.gpu2 node1.gpu3"),
        ("cpu", "node1", "node1.cpu"),  # all sockets of the node
        ("cpu*", "node1", "node1.cpu0 node1.cpu1"),
        ("node1.cpu", "", "node1.cpu"),
        ("nic", "node11", "node11.nic"),
        ("disk", "", "lustre"),
        ("disk", "node3", "lustre"),  # outwards, where the node has none
        ("node2", "", "node2"),
        ("node10..11", "", "node10 node11"),
    ],
)
def test_names_inside_machines(cluster: Machine, pattern: str, inside: str, names: str) -> None:
    assert " ".join(cluster.select(pattern, inside)) == names


def test_a_family_at_any_depth_is_in_natural_order(cluster: Machine) -> None:
    assert cluster.select("gpu*") == tuple(f"node{n}.gpu{g}" for n in range(12) for g in range(4))
    assert list(cluster.devices) == sorted(cluster.devices, key=natural)


@pytest.mark.parametrize(
    ("pattern", "message"),
    [
        ("gpu", "'gpu' matches 12 parts, expected one: gpu0, gpu1"),
        ("disk", "'disk' matches 2 parts, expected one: hdd, ssd"),
        ("gpu99", "there is no part 'gpu99'"),
        ("gpu10..13", "there is no gpu12"),
        ("gpu0..99999999999999", "invalid name"),
        ("gpu3..1", "is empty"),
        ("tpu", "there is no part 'tpu'"),
        ("gp*", "there is no part 'gp*'"),
        ("gpu[0]", "invalid name 'gpu[0]' in 'gpu[0]'"),
        ("node*.gpu*", "there is no part"),
        ("", "invalid name"),
        ("cpu.gpu0", "there is no part"),
    ],
)
def test_a_name_that_means_nothing_or_too_much_is_a_mistake(server: Machine, pattern: str, message: str) -> None:
    with pytest.raises(UnknownName) as caught:
        server.select(pattern)
    assert message in caught.value.message


def test_one_wants_one(cluster: Machine) -> None:
    assert cluster.one("gpu1", "node3") == "node3.gpu1"
    with pytest.raises(UnknownName, match="48 parts"):
        cluster.one("gpu*")
    with pytest.raises(UnknownName, match="expected a name"):
        cluster.one([])
    with pytest.raises(UnknownName, match="12 parts"):
        cluster.one("nic")
    with pytest.raises(UnknownName, match=r"12 parts, expected one: node0\.cpu, node1\.cpu"):
        cluster.one("cpu")


def test_hints_name_what_there_is(server: Machine) -> None:
    for pattern, hint in {"gpu99": "gpu11", "hd": "hdd", "gpus*": "'gpu*'"}.items():
        with pytest.raises(UnknownName) as caught:
            server.one(pattern)
        assert hint in (caught.value.hint or "")


def test_a_pattern_is_suggested_for_a_pattern(cluster: Machine) -> None:
    with pytest.raises(UnknownName) as caught:
        cluster.select("nodes*.gpu*")
    assert caught.value.hint == "did you mean 'node*.gpu*'?"


def test_devices_by_full_name_and_by_kind(cluster: Machine) -> None:
    assert cluster.device("node1.gpu0").node == "node1"
    assert cluster.device("node1.cpu").model.capacities("node1.cpu")[0].name == "node1.cpu0.cores"
    assert cluster.devices_of("nic", "node1") == ("node1.nic",)
    assert len(cluster.devices_of("gpu")) == 48
    with pytest.raises(UnknownName, match="node1 is a machine"):
        cluster.device("node1")
    with pytest.raises(UnknownName, match="no device"):
        cluster.device("node1.gpu9")
