"""NCCL on machines that state no library, on racks of one NVLink domain, frameworks' own kernels, and MPI on other networks."""

from __future__ import annotations

from functools import cache
from itertools import pairwise
from pathlib import Path

import pytest

from hwsim import api
from hwsim.communication import ALGORITHMS, Operation, timing
from hwsim.communication.measured import measured
from hwsim.machine import Machine
from hwsim.machine.libraries.custom_allreduce import CustomAllReduce
from hwsim.machine.libraries.nccl import Nccl
from published import collectives, collectives_own, collectives_serving
from published.collective_machines import SERVING
from published.score import Miss, group_median

KIB = 1024.0
MIB = KIB * KIB
OPERATIONS: tuple[Operation, ...] = ("all-reduce", "all-gather", "reduce-scatter", "all-to-all", "broadcast")


@cache
def board(links: str = "nvlink, use: nvlink4, links: 18", more: str = "", gpus: int = 8) -> Machine:
    return api.load_machine(
        f"""
hwsim: machine/1
{more}
parts:
  gpu: {{kind: gpu, use: h100-sxm, count: {gpus}}}
  nvs: {{kind: switch, reduces: true}}
links: [{{between: [gpu*, nvs], kind: {links}}}]
"""
    )


@cache
def racks() -> Machine:
    return api.load_machine(
        """
hwsim: machine/1
parts:
  rack:
    kind: machine
    count: 2
    parts:
      tray:
        kind: machine
        count: 3
        parts: {gpu: {kind: gpu, use: b200, count: 4}, nic: {kind: nic, use: connectx-7-ndr400, count: 4}}
        links: [{between: [gpu*, nic*], per: 1, kind: pcie, use: pcie5-x16}]
      nvs: {kind: switch, reduces: true}
    links: [{between: [tray*.gpu*, nvs], kind: nvlink, use: nvlink5, links: 18}]
  fabric: {kind: switch}
links: [{between: [rack*.tray*.nic*, fabric], kind: infiniband, use: ndr400}]
"""
    )


def seconds(machine: Machine, operation: Operation, size: float, among: str = "gpu*", algorithm: str = "auto") -> float:
    chosen = None if algorithm == "auto" else ALGORITHMS[algorithm]
    return timing.timed(machine, chosen, operation, machine.select(among), size).alone(machine.rates())


def test_a_machine_that_states_no_library_has_its_links_generation() -> None:
    unmeasured, stated = board(), board(more="collectives: {use: hgx-h100}")
    for operation in OPERATIONS:
        for size in (KIB, MIB, 256 * MIB):
            assert seconds(unmeasured, operation, size) == pytest.approx(seconds(stated, operation, size), rel=0.05)
    why = timing.timed(unmeasured, None, "all-reduce", unmeasured.select("gpu*"), KIB).phases[0].cost.why
    assert {doubt.case for term in why for doubt in term.doubts} == {"device"}
    assert any("default" in str(source) for term in why for _, _, source in term.inputs)


@pytest.mark.parametrize("more", ["class: ideal", "collectives: {start: 0 s}"])
def test_links_alone_where_the_machine_says_so(more: str) -> None:
    assert seconds(board(more=more), "all-gather", KIB, algorithm="direct") < 2e-6


def test_links_that_state_a_bandwidth_alone_are_a_textbooks() -> None:
    assert timing.library_of(board("nvlink, bandwidth: 25 GB/s", gpus=4), board(gpus=4).select("gpu*")) is None


@pytest.mark.parametrize("name", ["hgx-a100", "hgx-h100", "hgx-b200", "l40s-server", "rtx-pro-6000-server"])
@pytest.mark.parametrize("operation", OPERATIONS)
def test_a_longer_message_is_never_faster(name: str, operation: Operation) -> None:
    assert name in SERVING
    machine, rates = collectives.machine_of(name), collectives.machine_of(name).rates()
    for ranks in (2, 4, 8):
        devices = collectives.devices_of(name, ranks, 1)
        times = [timing.timed(machine, None, operation, devices, 2 ** (index / 2)).alone(rates) for index in range(18, 61)]
        assert all(before <= after * (1 + 1e-9) for before, after in pairwise(times))


def test_all_to_all_pays_for_every_peer() -> None:
    times = [seconds(board(gpus=count), "all-to-all", KIB) for count in (2, 4, 8)]
    sends = measured(Nccl, "nvlink4").sends
    assert sends is not None
    assert times[1] - times[0] == pytest.approx(2 * sends.peer, rel=0.1)
    assert times[2] - times[1] == pytest.approx(4 * sends.peer, rel=0.1)


def test_pcie_is_slower_through_processors_and_slowest_between_them() -> None:
    machine = collectives.machine_of("l40s-server")
    two, four, eight = (
        timing.timed(machine, None, "all-gather", collectives.devices_of("l40s-server", count, 1), 256 * MIB).alone(
            machine.rates()
        )
        * count
        / (count - 1)
        for count in (2, 4, 8)
    )
    assert 3 < four / two < 6
    assert 3 < eight / four < 6


def test_nodes_of_a_rack_are_one_nvlink_domain() -> None:
    machine = racks()
    trays = timing.timed(machine, None, "all-reduce", machine.select("rack0.tray*.gpu*"), MIB)
    one_board = board("nvlink, use: nvlink5, links: 18", gpus=12)
    alone = timing.timed(one_board, None, "all-reduce", one_board.select("gpu*"), MIB).alone(one_board.rates())
    assert trays.alone(machine.rates()) == pytest.approx(alone, rel=0.01)
    assert seconds(machine, "all-reduce", MIB, "rack*.tray*.gpu*") > 1.2 * trays.alone(machine.rates())


def test_a_frameworks_own_kernel_up_to_its_size_then_nccl() -> None:
    machine = board()
    own = seconds(machine, "all-reduce", 4 * KIB, algorithm="trtllm")
    assert 2e-6 < own < 6e-6
    assert seconds(machine, "all-reduce", 4 * KIB) > 3 * own
    long = [seconds(machine, "all-reduce", 256 * MIB, algorithm=name) for name in ("auto", "trtllm", "vllm")]
    assert long[0] == long[1] == long[2]
    stated = board(more="collectives: {own: {use: trtllm}, nccl: {use: hgx-h100}}")
    assert seconds(stated, "all-reduce", 4 * KIB) == own


def test_numbers_of_own_kernels_are_known_by_links() -> None:
    own: CustomAllReduce = measured(CustomAllReduce, "vllm")
    near = own.on("nvlink", 2)
    assert near is not None
    assert near[0] == "nvlink3"
    assert own.on("direct", 3) is None


def test_own_kernels_need_a_link_between_all_gpus() -> None:
    amd, cube = api.load_machine("mi300x-8"), api.load_machine("p3.16xlarge")  # a full mesh; a cube with missing links
    assert 4e-6 < seconds(amd, "all-reduce", 16 * KIB, algorithm="vllm") < 0.5 * seconds(amd, "all-reduce", 16 * KIB)
    assert seconds(cube, "all-reduce", 16 * KIB, algorithm="vllm") == seconds(cube, "all-reduce", 16 * KIB)


def test_steps_of_an_own_kernel_take_as_long_as_its_flow() -> None:
    times = [
        api.simulate(
            board(gpus=4),
            {
                "hwsim": "workload/1",
                "program": [{"allreduce": {"among": "gpu*", "bytes": "1 MB", "algorithm": "sglang", "steps": steps}}],
            },
        ).makespan_s
        for steps in ("steady", "explicit")
    ]
    assert times[0] == pytest.approx(times[1], rel=0.35)


def network(card: str, link: str, switch: str, lanes: int = 16) -> Machine:
    return api.load_machine(
        f"""
hwsim: machine/1
collectives: {{mpi: {{use: openmpi-ucx-edr}}}}
parts:
  node:
    kind: machine
    count: 2
    parts: {{cpu: {{kind: cpu, use: xeon-e5-2686v4}}, nic: {{kind: nic, use: {card}}}}}
    links: [{{between: [cpu, nic], kind: pcie, use: pcie3-x16, lanes: {lanes}}}]
  sw: {{kind: switch, use: {switch}}}
links: [{{between: [node*.nic, sw], {link}}}]
"""
    )


def test_mpi_follows_the_network() -> None:
    measured_on = network("connectx-5-edr100", "kind: infiniband, use: edr100", "sb7800-edr")
    slow = network("x520-10gbe", "kind: ethernet, use: 10gbe", "10gbe-48", lanes=8)
    for operation, size in (("send", 1e6), ("all-reduce", 1e6), ("all-gather", 1e6)):
        times = [seconds(machine, operation, size, "node*.cpu") for machine in (measured_on, slow)]  # type: ignore[arg-type]
        assert times[1] > 1.2 * times[0]


def test_published_collectives_stay_near(reference_data: Path) -> None:
    rows = [row for row in collectives_serving.rows(reference_data) if not row.even][::4]
    wide = [Miss(row.said(), collectives.predicted(row), row.seconds, row.machine) for row in rows if "server" not in row.machine]
    own = [row for row in collectives_own.rows(reference_data) if not row.even and collectives_own.own(row)]
    kernels = [
        Miss(row.said(), collectives_own.predicted(row), row.seconds, row.group) for row in own if "server" not in row.machine
    ]
    assert group_median(wide)[0] < 0.06
    assert group_median(kernels)[0] < 0.06


@cache
def boards(node: str, nodes: int) -> Machine:
    return api.load_machine(
        f"""
hwsim: machine/1
parts:
  node: {{kind: machine, use: {node}, count: {nodes}}}
  fabric: {{kind: switch}}
links: [{{between: [node*.nic*, fabric], kind: infiniband, use: ndr400}}]
"""
    )


@pytest.mark.parametrize("node", ["dgx-h100", "dgx-h200", "dgx-b200", "dgx-b300"])
@pytest.mark.parametrize(("nodes", "stride"), [(2, 1), (2, 8), (48, 8)])
def test_what_is_chosen_between_nodes_carries_what_cards_carry(node: str, nodes: int, stride: int) -> None:
    """What a GPU's threads pass on of NVLink's rate is not what they make of a card's: one rank a node, or all."""
    machine = boards(node, nodes)
    ranks = machine.devices_of("gpu")[::stride]
    for size in (256 * MIB, 2048 * MIB):
        seconds = timing.timed(machine, None, "all-reduce", ranks, size).alone(machine.rates())
        crossing = 2 * (nodes - 1) / nodes * size / (8 // stride)  # bytes through each card that is used
        inside = 2 * size if stride == 1 else 0.0  # through each GPU's NVLinks
        assert seconds <= max(crossing / 50e9, inside / 450e9) / 0.6
