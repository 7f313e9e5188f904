"""What NCCL chooses and what it takes; what MPI takes; the measured numbers of the library."""

from __future__ import annotations

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hwsim.api import load_machine
from hwsim.communication import CannotCollect, RankGroup
from hwsim.communication.flows import Task
from hwsim.communication.measured import measured
from hwsim.communication.selection import bus, choose, hardware
from hwsim.communication.timing import collective_sends
from hwsim.communication.tuning import Hardware, candidates
from hwsim.machine import Machine, build
from hwsim.machine.libraries.mpi import Mpi, MpiCurve
from hwsim.machine.libraries.nccl import Nccl, ProtocolCosts, RingBandwidth
from hwsim.spec import Mistakes, find, names, read, read_text

KIB, MIB, GIB = 1 << 10, 1 << 20, 1 << 30
H200, B200 = Hardware("hopper", 18 * 20.6, nvls=True), Hardware("blackwell", 18 * 40.1, nvls=True)
NODES = Hardware("hopper", 18 * 20.6, nics=8, nic=50, nvls=True)


def made(text: str) -> Machine:
    mistakes = Mistakes()
    found = build(read_text(text), mistakes)
    mistakes.raise_if_any()
    assert found is not None
    return found


DGX = """
hwsim: machine/1
class: ideal
parts:
  gpu: {{kind: gpu, use: {gpu}, count: {count}}}
  nvswitch: {{kind: switch, reduces: true}}
links: [{{between: [gpu*, nvswitch], kind: nvlink, use: nvlink{gen}, links: {links}}}]
"""
EIGHT_H200 = made(DGX.format(gpu="h200-sxm", count=8, gen=4, links=18))
EIGHT_A100 = made(DGX.format(gpu="a100-sxm-40gb", count=8, gen=3, links=12))


# ---- NCCL's own tables


@pytest.mark.parametrize(("size", "method"), [(32 * KIB, "ring"), (MIB, "ring"), (2 * MIB, "nvls"), (16 * GIB, "nvls")])
def test_eight_h200_change_from_ring_to_switch_where_nccl_said_they_do(size: int, method: str) -> None:
    best = candidates(H200, "all-reduce", RankGroup(8), size)[0]
    assert (best.method, best.protocol) == (method, "ll" if method == "ring" else "simple")


@pytest.mark.parametrize(("gpus", "method"), [(2, "ring"), (4, "ring"), (5, "nvls"), (6, "nvls"), (7, "nvls"), (8, "nvls")])
def test_h200_add_in_the_switch_from_five_gpus(gpus: int, method: str) -> None:
    assert candidates(H200, "all-reduce", RankGroup(gpus), 8 * GIB)[0].method == method


@pytest.mark.parametrize(("gpus", "method"), [(4, "ring"), (5, "ring"), (7, "nvls"), (8, "nvls")])
def test_b200_add_in_the_switch_for_most_of_a_node(gpus: int, method: str) -> None:
    assert candidates(B200, "all-reduce", RankGroup(gpus), 8 * GIB)[0].method == method


def test_the_bandwidth_that_nccl_expects_of_eight_h200_is_what_is_measured() -> None:
    best = candidates(H200, "all-reduce", RankGroup(8), 16 * GIB)[0]
    assert 2 * 7 / 8 * best.bandwidth == pytest.approx(482e9, rel=0.02)


def test_gathers_stay_on_the_ring() -> None:
    assert candidates(H200, "all-gather", RankGroup(8), GIB)[0].method == "ring"


def test_small_sums_over_nodes_take_the_tree() -> None:
    assert candidates(NODES, "all-reduce", RankGroup(32, (8,) * 4), 4 * KIB)[0].method == "tree"


def test_what_nccl_does_not_choose_is_refused() -> None:
    with pytest.raises(CannotCollect, match="all-to-all"):
        candidates(H200, "all-to-all", RankGroup(8), 1.0)
    with pytest.raises(CannotCollect, match="at least 2 ranks"):
        candidates(H200, "all-reduce", RankGroup(1), 1.0)
    with pytest.raises(CannotCollect, match="no NICs"):
        candidates(H200, "all-reduce", RankGroup(16, (8, 8)), 1.0)


@given(
    size=st.floats(1.0, 1e12),
    ranks=st.integers(2, 16),
    nodes=st.integers(1, 8),
    operation=st.sampled_from(["all-reduce", "all-gather", "reduce-scatter", "broadcast", "reduce"]),
)
def test_candidates_are_sorted_and_finite(size: float, ranks: int, nodes: int, operation: str) -> None:
    found = candidates(NODES, operation, RankGroup(ranks * nodes, (ranks,) * nodes if nodes > 1 else ()), size)  # type: ignore[arg-type]
    times = [candidate.seconds(size) for candidate in found]
    assert times == sorted(times)
    assert all(0 < time < math.inf for time in times)


def test_the_tables_see_what_a_machine_has() -> None:
    found = hardware(EIGHT_H200, EIGHT_H200.select("gpu*"), RankGroup(8))
    assert (found.generation, found.link, found.nvls) == ("hopper", "nvlink", True)
    assert found.inside == pytest.approx(18 * 20.6)


# ---- on machines


def test_without_measured_numbers_the_links_give_the_time_of_the_choice() -> None:
    gpus = EIGHT_H200.select("gpu*")
    chosen = choose(Task(EIGHT_H200, "all-reduce", gpus, 4 * GIB))
    assert chosen.choice.name == "nvls, simple"
    assert chosen.choice.runner_up.startswith("ring")
    assert chosen.flows.alone(EIGHT_H200.rates()) == pytest.approx(4 * GIB * 9 / 8 / 376.2e9, rel=0.01)


@pytest.mark.parametrize("size", [KIB, 64 * KIB, MIB, 16 * MIB, GIB])
@pytest.mark.parametrize("operation", ["all-reduce", "all-gather", "send"])
def test_measured_numbers_are_the_time_on_the_machine(size: int, operation: str) -> None:
    gpus = EIGHT_A100.select("gpu0..1" if operation == "send" else "gpu*")
    numbers = measured(Nccl, "nd96asr-v4")
    chosen = choose(Task(EIGHT_A100, operation, gpus, size), numbers)  # type: ignore[arg-type]
    rates = EIGHT_A100.rates()
    assert chosen.flows.alone(rates) == pytest.approx(max(numbers.issue, chosen.choice.seconds), rel=1e-9)
    assert chosen.choice.seconds <= chosen.choice.runner_up_seconds
    demand, why = chosen.flows.phases[0].cost.demand, chosen.flows.phases[0].cost.why
    assert sum(term.seconds for term in why if term.kind == "latency") == pytest.approx(demand.latency)
    assert demand.amounts


@pytest.mark.parametrize(("size", "name"), [(MIB, "ring, ll"), (2 * MIB, "nvls, simple"), (GIB, "nvls, simple")])
def test_measured_h200_change_where_nccl_said_they_do(size: int, name: str) -> None:
    assert choose(Task(EIGHT_H200, "all-reduce", EIGHT_H200.select("gpu*"), size), measured(Nccl, "h200")).choice.name == name


def test_the_bus_of_a_hybrid_cube_mesh_is_its_rings_in_both_directions() -> None:
    mistakes = Mistakes()
    machine = build(read(find("machine", "d2l-8gpu-nvlink")), mistakes)
    mistakes.raise_if_any()
    assert machine is not None
    assert bus(machine, machine.select("gpu*")).inside == pytest.approx(6 * 18e9)
    assert bus(machine, machine.select("gpu*")).link == "nvlink"


def test_one_device_has_nothing_to_choose() -> None:
    chosen = choose(Task(EIGHT_H200, "all-reduce", ("gpu0",), 1e9))
    assert chosen.flows.alone(EIGHT_H200.rates()) == 0.0


# ---- what it takes


seconds = st.floats(1e-8, 1e-3)
speeds = st.builds(ProtocolCosts, step=seconds, hop=seconds, rate=st.floats(0.01, 1.0))
ncclss = st.builds(
    Nccl,
    start=seconds,
    ll=speeds,
    ll128=speeds,
    simple=speeds,
    nvlink=st.floats(0.1, 1.0),
    network=st.floats(0.1, 1.0),
    tree=st.one_of(st.just(0.0), st.floats(0.01, 1.0)),
    nvls=st.one_of(st.just(0.0), st.floats(0.01, 2.0)),
    nvls_knee=st.floats(0.0, 1e8),
    issue=seconds,
)
shapes = st.sampled_from([RankGroup(2), RankGroup(8), RankGroup(16, (8, 8)), RankGroup(4, (1, 1, 1, 1)), RankGroup(5, (2, 3))])


@given(nccl=ncclss, group=shapes, size=st.floats(0.0, 1e11), more=st.floats(1.0, 100.0), faster=st.floats(1.0, 100.0))
@settings(max_examples=80)
def test_more_bytes_never_take_less_and_faster_links_never_more(
    nccl: Nccl, group: RankGroup, size: float, more: float, faster: float
) -> None:
    slow, quick = RingBandwidth(100e9, 10e9), RingBandwidth(100e9 * faster, 10e9 * faster)
    for operation in ("all-reduce", "all-gather", "broadcast", "send"):
        best = nccl.estimates(operation, group, size, slow)[0]
        assert 0 < nccl.time(best) < math.inf
        assert nccl.time(nccl.estimates(operation, group, size * more, slow)[0]) >= nccl.time(best) * (1 - 1e-12)
        assert nccl.time(nccl.estimates(operation, group, size, quick)[0]) <= nccl.time(best) * (1 + 1e-12)


def test_measured_numbers_refuse_what_was_not_measured() -> None:
    with pytest.raises(CannotCollect, match="all-to-all"):
        measured(Nccl, "h200").estimates("all-to-all", RankGroup(8), 1.0, RingBandwidth(1e9))


@given(
    curve=st.builds(
        MpiCurve,
        start=seconds,
        bandwidth=st.floats(1e6, 1e12),
        root=st.floats(0.0, 1e-6),
        knee=st.floats(0.0, 1e7),
        eager=st.floats(0.0, 1e6),
        rendezvous=seconds,
        ranks=st.integers(2, 1000),
    ),
    ranks=st.integers(2, 1000),
    size=st.floats(0.0, 1e9),
    more=st.floats(1.0, 10.0),
)
def test_longer_messages_never_take_less(curve: MpiCurve, ranks: int, size: float, more: float) -> None:
    mpi = Mpi({"all-gather": curve})
    assert mpi.seconds("all-gather", ranks, size * more) >= mpi.seconds("all-gather", ranks, size) * (1 - 1e-12) >= 0


def test_an_operation_without_a_curve_is_refused() -> None:
    with pytest.raises(CannotCollect, match="no MPI curve for scan"):
        Mpi({"send": MpiCurve(1e-6, 1e9)}).seconds("scan", 2, 1.0)


@pytest.mark.parametrize("name", names("nccl"))
def test_measured_numbers_of_nccl_read_and_say_where_they_are_from(name: str) -> None:
    numbers = measured(Nccl, name)
    assert numbers.sources["start"].kind in {"fitted", "guess"}
    assert numbers.estimates("all-reduce", RankGroup(8), 1e6, RingBandwidth(100e9))[0].seconds > 0


@pytest.mark.parametrize("name", names("mpi"))
def test_measured_numbers_of_mpi_read_and_say_where_they_are_from(name: str) -> None:
    numbers = measured(Mpi, name)
    assert numbers.curves
    assert all(source.kind == "fitted" for key, source in numbers.sources.items() if key.startswith("curves"))


def test_sums_in_the_switch_have_no_steps_and_rings_have() -> None:
    """As single sends, what NCCL chooses starts once; the switch's sums then only flow."""
    machine = load_machine("dgx-h100")
    latencies = {}
    for size in (GIB, 64 * KIB):
        found = [send.cost for send in collective_sends(Task(machine, "all-reduce", machine.select("gpu*"), size), None)]
        assert found[0].choice is not None
        latencies[found[0].choice.name] = {round(cost.demand.latency * 1e6, 3) for cost in found}
    summed, ring = latencies["nvls, simple"], latencies["ring, ll"]
    assert min(summed) < min(ring) < 5.0  # a step of a ring, beyond its links
    assert max(summed) == pytest.approx(17.2 + 4.71 + min(summed), abs=1.0)
