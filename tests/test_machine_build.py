"""Building machines from files: what is right whatever the order, and what is wrong, where and why."""

from __future__ import annotations

from itertools import pairwise, permutations
from pathlib import Path

import pytest

from hwsim.machine import Machine, build
from hwsim.spec import Mistakes, read, read_text
from tests.effort import effort

CPU = "kind: cpu, cores: 2, flop: {fp32: 1 GFLOP/s}, memory: {bandwidth: 100 GB/s}, lanes: 40"
GPU = "kind: gpu, class: ideal, flop: {fp32: 1 TFLOP/s}, memory: {bandwidth: 1 TB/s}, nvlinks: 6, lanes: 16"
PARTS = [f"  cpu: {{{CPU}, count: 2}}", f"  gpu: {{{GPU}, count: 11}}", "  psw: {kind: switch, count: 2}"]
LINKS = [
    "  - {between: [cpu*, psw*], per: 1, kind: pcie, gen: 3, lanes: 16}",
    "  - {between: [psw0, gpu0..5], kind: pcie, gen: 3, lanes: 16}",
    "  - {between: [psw1, gpu6..10], kind: pcie, gen: 3, lanes: 16}",
    "  - {topology: ring, of: gpu*, kind: nvlink, gen: 2, links: 2}",
]


def attempt(text: str) -> tuple[Machine | None, str]:
    mistakes = Mistakes()
    built = build(read_text("hwsim: machine/1\n" + text, "m.yaml"), mistakes)
    return built, "\n".join(str(mistake) for mistake in mistakes)


def machine(text: str) -> Machine:
    built, mistakes = attempt(text)
    assert built is not None, mistakes
    return built


def test_the_order_of_parts_and_links_changes_nothing() -> None:
    first = machine("\n".join(["parts:", *PARTS, "links:", *LINKS]))
    assert len(first.links) == 2 * (2 + 6 + 5 + 11)
    for parts, links in zip(permutations(PARTS), permutations(LINKS), strict=False):
        other = machine("\n".join(["links:", *links, "parts:", *parts]))
        assert other == first
        assert [*other.devices] == [*first.devices]
        assert [*other.capacities] == [*first.capacities]


def test_per_gives_each_of_a_the_next_of_b() -> None:
    of = machine(
        f"parts: {{sw: {{kind: switch, count: 3}}, gpu: {{{GPU}, count: 12}}}}\n"
        "links: [{between: [sw*, gpu*], per: 4, kind: pcie, gen: 3, lanes: 1}]"
    )
    sources = {link.target: link.source for link in of.links}
    assert [sources[name] for name in of.select("gpu*")] == [f"sw{n // 4}" for n in range(12)]


def test_machines_in_machines_nest() -> None:
    of = machine(
        "let: {nodes: 3, racks: 2, gpus: 2}\nparts:\n  rack:\n    kind: machine\n    count: $racks\n    parts:\n"
        f"      node:\n        kind: machine\n        count: $nodes\n        parts: {{gpu: {{{GPU}, count: $gpus}}}}\n"
        "        links: [{topology: ring, of: gpu*, kind: nvlink, gen: 2}]\n"
    )
    assert [*of.devices] == [f"rack{r}.node{n}.gpu{g}" for r in range(2) for n in range(3) for g in range(2)]
    assert [*of.nodes] == [name for r in range(2) for name in (f"rack{r}", *(f"rack{r}.node{n}" for n in range(3)))]
    assert of.devices["rack1.node2.gpu0"].node == "rack1.node2"
    assert of.select("rack1.node*.gpu0") == tuple(f"rack1.node{n}.gpu0" for n in range(3))
    assert of.select("node*.gpu0", "rack1") == of.select("rack1.node*.gpu0")
    assert len(of.route("rack1.node2.gpu0", "rack1.node2.gpu1")) == 1
    assert of.let == {"nodes": 3, "racks": 2, "gpus": 2}


def test_a_machine_from_a_file_has_parameters_of_its_own(tmp_path: Path) -> None:
    (tmp_path / "node.yaml").write_text(
        f"hwsim: machine/1\nlet: {{n: 2}}\nparts:\n  gpu: {{{GPU}, count: $n}}\n", encoding="utf-8"
    )
    text = "hwsim: machine/1\nlet: {n: 3}\nparts:\n  node: {kind: machine, use: ./node.yaml, count: $n%s}\n"
    for beside, gpus in (("", 2), (", let: {n: 5}", 5)):
        (tmp_path / "top.yaml").write_text(text % beside, encoding="utf-8")
        of = build(read(tmp_path / "top.yaml"), Mistakes())
        assert len(of.nodes) == 3
        assert len(of.devices) == 3 * gpus


def test_every_capacity_has_one_owner_and_every_link_one_capacity() -> None:
    of = machine("\n".join(["parts:", *PARTS, "links:", *LINKS]))
    assert {link.capacity for link in of.links} <= set(of.capacities)
    assert all(name == capacity.name and capacity.rate > 0 for name, capacity in of.capacities.items())
    one_way = [capacity for capacity in of.capacities.values() if capacity.unit == "B" and "<->" not in capacity.name]
    assert len(one_way) == len(of.links)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("parts: {}", "m.yaml:2:1: the machine has no parts"),
        ("name: x", "'parts' is missing"),
        (f"parts: {{cpu: {{{CPU}}}}}\nlinkz: []", "unknown key 'linkz' in machine file"),
        ("parts: {cpu: {kind: cpuu}}", "m.yaml:2:21: unknown kind of part 'cpuu'"),
        ("parts: {cpu: {cores: 4}}", "'kind' is missing"),
        (f"parts: {{cpu: {{{CPU}, count: 0}}}}", "count"),
        (f"parts: {{cpu: {{{CPU}, clock: 2 GHz}}}}", "`clock` has no effect without `per_cycle`"),
        (
            "parts: {gpu: {kind: gpu, flop: {fp23: 1 GFLOP/s}, memory: {bandwidth: 1 GB/s}}}",
            "m.yaml:2:33: unknown number format 'fp23'",
        ),
        (
            "parts: {gpu: {kind: gpu, flop: {fp32: 1 GB/s}, memory: {bandwidth: 1 GB/s}}}",
            "'1 GB/s' is a bandwidth, but a speed is needed",
        ),
        (f"parts: {{{'a' * 61}: {{{CPU}}}}}", "invalid name of a part"),
        (f"parts: {{a.b: {{{CPU}}}}}", "invalid name of a part 'a.b'"),
        (f"parts: {{gpu: {{{GPU}, count: 2}}, gpu1: {{{GPU}}}}}", "two parts are called gpu1"),
        (f"parts: {{gpu: {{{GPU}, count: 99999999}}}}", "more than 1000000 devices"),
        (f"parts: {{node: {{kind: machine, let: {{n: 1}}, parts: {{cpu: {{{CPU}}}}}}}}}", "`let` is not supported for machine"),
    ],
)
def test_a_mistake_in_the_parts_is_said_with_its_place(text: str, message: str) -> None:
    built, said = attempt(text)
    assert built is None
    assert message in said


@pytest.mark.parametrize(
    ("link", "message"),
    [
        ("{between: [cpu0, gpu9], kind: pcie, gen: 3, lanes: 16}", "there is no part 'gpu9'"),
        ("{between: [cpu0, gpu0], gen: 3, lanes: 16}", "'kind' is missing"),
        ("{between: [cpu0, gpu0], kind: pcie}", "a pcie link needs gen and lanes"),
        ("{between: [cpu0, gpu0], kind: pcie, gen: 7, lanes: 16}", "7 is not one of 1, 2, 3, 4, 5, 6"),
        ("{between: [cpu0], kind: pcie, gen: 3, lanes: 16}", "expected a list of 2, got"),
        ("{kind: pcie, gen: 3, lanes: 16}", "expected either `between` or `topology`"),
        ("{topology: ring, kind: nvlink, gen: 2}", "`topology: ring` requires `of`"),
        ("{topology: star, of: gpu*, kind: nvlink, gen: 2}", "'hub' is missing"),
        ("{topology: hybrid-cube-mesh, of: gpu*, kind: nvlink, gen: 2}", "requires 8 members, got 4"),
        ("{between: [cpu, psw], kind: pcie, gen: 3, lanes: 16}", "cpu is several sockets: expected a device"),
        ("{between: [inner, psw], kind: pcie, gen: 3, lanes: 16}", "inner is a machine: expected a device"),
        ("{between: [psw, psw], kind: pcie, gen: 3, lanes: 16}", "psw is linked to itself"),
        ("{between: [cpu*, gpu*], per: 3, kind: pcie, gen: 3, lanes: 4}", "`per: 3` connects 2 x 3 = 6 devices, got 4"),
        ("{between: [gpu, psw], kind: pcie, gen: 3, lanes: 16}", "'gpu' matches 4 parts, expected one"),
        ("{between: [cpu0, gpu0..2], kind: pcie, gen: 3, lanes: 16}", "cpu0 has 40 lanes, but 48 are used"),
        (
            "{topology: fully-connected, of: gpu*, kind: nvlink, gen: 2, links: 3}",
            "gpu0 has 6 nvlinks, but 9 are used (and 3 more)",
        ),
    ],
)
def test_a_mistake_in_the_links_is_said_with_its_place(link: str, message: str) -> None:
    inner = f"{{kind: machine, parts: {{x: {{{CPU}}}}}}}"
    built, said = attempt(
        f"parts:\n  cpu: {{{CPU}, count: 2}}\n  gpu: {{{GPU}, count: 4}}\n"
        f"  psw: {{kind: switch}}\n  inner: {inner}\nlinks:\n  - {link}\n"
    )
    assert built is None
    assert message in said
    assert "m.yaml:8:" in said


def test_two_links_between_the_same_need_two_names() -> None:
    parts = f"parts: {{cpu: {{{CPU}}}, gpu: {{{GPU}}}}}\n"
    link = "between: [cpu, gpu], kind: direct, bandwidth: 1 GB/s"
    built, said = attempt(parts + f"links: [{{{link}}}, {{between: [gpu, cpu], kind: direct, bandwidth: 2 GB/s}}]")
    assert built is None
    assert "cpu are linked twice by 'direct'" in said
    assert len(machine(parts + f"links: [{{{link}}}, {{name: second, {link}}}]").links) == 4


def test_budgets_count_links_of_all_entries() -> None:
    parts = f"parts: {{cpu: {{{CPU}}}, gpu: {{{GPU}, count: 3}}}}\n"
    one = "{between: [cpu, %s], kind: pcie, gen: 3, lanes: 16}"
    assert attempt(parts + f"links: [{one % 'gpu0'}, {one % 'gpu1'}]")[0] is not None
    assert "cpu has 40 lanes, but 48 are used" in attempt(parts + f"links: [{one % 'gpu0'}, {one % 'gpu1'}, {one % 'gpu2'}]")[1]


def test_a_digit_before_a_count_is_warned_of() -> None:
    assert "gpu10" in machine(f"parts: {{gpu1: {{{GPU}, count: 2}}}}").warnings[0].text


def test_a_thousand_nodes_of_eight_gpus_are_built_in_seconds() -> None:
    text = (
        "parts:\n  node: {kind: machine, use: p3.16xlarge, count: 128}\n  sw: {kind: switch}\n"
        "links: [{topology: star, of: node*.nic, hub: sw, kind: ethernet, rate: 25 Gb/s}]\n"
    )
    assert effort(lambda: machine(text)) < 80  # measured: 6; 1024 nodes 55
    of = machine(text)
    gpus = of.select("gpu*")
    assert len(gpus) == 1024
    assert sum(len(of.route(a, b)) for a, b in pairwise(gpus)) > 1024
