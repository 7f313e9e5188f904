"""The library's workloads of collectives and parameter servers, and what they are to teach."""

from __future__ import annotations

from typing import Any

import pytest

import hwsim

FOUR, MESH, RACK = "d2l-4gpu-pcie", "d2l-8gpu-nvlink", "d2l-ps-cluster"


def seconds(machine: str, workload: str, **changes: Any) -> float:
    said = {path.replace("__", "."): value for path, value in changes.items()}
    return hwsim.simulate(machine, f"d2l/{workload}", set=said).makespan_s


@pytest.mark.parametrize(
    ("algorithm", "milliseconds"),
    [
        ("ps-gpu0", 60),
        ("ps-cpu", 80),
        ("ps-sharded", 15),
        ("ring", 15),
        ("direct", 15),
        ("halving-doubling", 15),
        ("recursive-doubling", 20),
    ],
)
def test_every_way_to_add_up_160_mb_takes_what_the_text_or_its_formula_says(algorithm: str, milliseconds: float) -> None:
    assert seconds(FOUR, "allreduce-160mb", algorithm=algorithm) == pytest.approx(milliseconds / 1e3, rel=0.01)


def test_the_switch_of_the_text_adds_only_where_it_is_said_to() -> None:
    with pytest.raises(hwsim.SpecError, match="switch 'psw' does not support in-network reduction"):
        seconds(FOUR, "allreduce-160mb", algorithm="sharp")
    assert seconds(FOUR, "allreduce-160mb", algorithm="sharp", machine__psw__reduces=True) == pytest.approx(10e-3, rel=0.01)


def test_two_rings_take_5_185_ms_and_the_text_says_an_eighth_of_a_ring_more() -> None:
    found = seconds(MESH, "two-nvlink-rings")
    assert found == pytest.approx(5.185e-3, rel=1e-3)
    assert found * 8 / 7 == pytest.approx(5.93e-3, rel=1e-3)
    nccl = found * 18 / 25 / 0.8  # p3.16xlarge has NCCL's kernels: 20 of NVLink 2's 25 GB/s, and their steps
    assert nccl < seconds("p3.16xlarge", "two-nvlink-rings") < 1.03 * nccl
    assert seconds(MESH, "two-nvlink-rings", algorithm="rings-both-ways") == pytest.approx(found / 2, rel=1e-2)


@pytest.mark.parametrize(("workers", "servers"), [(1, 1), (4, 1), (16, 1), (12, 3), (6, 4), (24, 24), (8, 16)])
def test_the_time_grows_as_workers_over_servers_and_more_servers_than_workers_do_not_help(workers: int, servers: int) -> None:
    found = seconds(RACK, "ps-scaling", machine__let__workers=workers, machine__let__servers=servers)
    assert found == pytest.approx(0.256 * max(1.0, workers / servers))


def test_a_hierarchy_sends_each_computer_s_sum_once() -> None:
    found = seconds(RACK, "hierarchical-ps")
    assert found == pytest.approx(0.030 + 0.010 + 0.512 + 0.010 + 0.030, rel=0.01)
    assert seconds(RACK, "hierarchical-ps", machine__let__servers=8) == pytest.approx(found - 0.256, rel=0.01)


def test_urgent_keys_first_shorten_the_step_and_first_come_first_served_is_worst() -> None:
    urgent, alike = seconds(RACK, "kvstore-push-pull"), seconds(RACK, "kvstore-push-pull", urgency=1)
    line = seconds(RACK, "kvstore-push-pull", queue0="comm", queue1="comm", queue2="comm")
    assert urgent < 0.85 * alike < alike < line
    assert line == pytest.approx(3 * (4 * 0.020 + 4 * 0.160 + 2 * 0.0128), rel=1e-3)  # forward, backward 2, the keys in line


def test_a_weight_divides_a_link_in_proportion() -> None:
    def copy(weight: float) -> dict[str, Any]:
        name = f"weight {weight:g}"
        return {"copy": {"name": name, "from": "gpu0", "to": "gpu1", "bytes": "16 GB", "queue": name, "weight": weight}}

    at_once = {"hwsim": "machine/1", "class": "ideal", "use": FOUR, "parts": {"gpu": {"copies": {"setup": "0 s"}}}}
    run = hwsim.simulate(at_once, {"hwsim": "workload/1", "program": [copy(3), copy(1)]})
    assert run.makespan_s == pytest.approx(2.0)  # work conserving
    alone = hwsim.simulate(at_once, {"hwsim": "workload/1", "program": [copy(3)]})
    assert alone.makespan_s == pytest.approx(1.0)  # nobody to share with
    first = hwsim.simulate(at_once, {"hwsim": "workload/1", "program": [copy(3), copy(1), {"wait": "weight 3"}, copy(1)]})
    assert first.makespan_s == pytest.approx(3.0)


def test_buckets_leave_the_last_one_s_time_to_see() -> None:
    step = 0.015 + 0.030
    assert seconds(FOUR, "bucketed-overlap", steps=1) == pytest.approx(step + 0.0015, rel=0.01)
    assert seconds(FOUR, "bucketed-overlap", steps=1, buckets=2) == pytest.approx(step + 0.0075, rel=0.01)
    assert seconds(FOUR, "bucketed-overlap", steps=1, buckets=1) == pytest.approx(step + 0.015, rel=0.01)
    slow = seconds(FOUR, "bucketed-overlap", steps=1, bytes="640 MB")
    assert slow == pytest.approx(0.015 + 0.003 + 0.060, rel=0.01)  # the first bucket, then the links


def test_everyone_waits_for_the_slow_gpu_and_for_the_broken_link() -> None:
    healthy = seconds(FOUR, "slow-gpu", slow="100 %", down="1 us")
    assert healthy == pytest.approx(10 * 0.035, rel=1e-3)
    assert seconds(FOUR, "slow-gpu", down="1 us") == pytest.approx(healthy + 7 * 0.020, rel=0.01)
    assert healthy < seconds(FOUR, "slow-gpu", slow="100 %") <= healthy + 0.100 + 1e-6
    assert seconds(FOUR, "slow-gpu") == pytest.approx(0.585, rel=0.01)


def test_a_replica_saves_the_time_that_the_server_is_away() -> None:
    step = 0.100 + 2 * 8 * 160e6 / 1.25e9
    assert seconds(RACK, "server-lost") == pytest.approx(4 * step + 0.5, rel=1e-3)
    alone = seconds(RACK, "server-lost", replica="server0")
    assert alone == pytest.approx(4.3 + 30 + 2 * step - 0.100, rel=0.01)
