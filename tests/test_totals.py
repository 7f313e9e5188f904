"""What all ops ask of a disk or a memory together: the run says where the closed form of one op does not know of it."""

from __future__ import annotations

from typing import Any

import pytest

import hwsim

VOLUME = {"kind": "volume", "iops": "1 kIOPS", "bandwidth": "1 GB/s", "burst_iops": "3 kIOPS", "credits": 2000, "size": "1 TB"}
SSD = {"kind": "ssd", "read": "4 GB/s", "write": "1 GB/s", "latency": "0 s", "cache": {"size": "90 GB", "write": "4 GB/s"}}
HDD = {
    "kind": "hdd",
    "rpm": 7200,
    "seek": {"track": "1 ms", "average": "8 ms", "full": "15 ms", "cylinders": 100000},
    "outer": "200 MB/s",
    "inner": "100 MB/s",
    "size": "4 TB",
}
CACHING = {**HDD, "write_cache": True, "cache": "100 MB"}
DISK = {"kind": "disk", "read": "1 GB/s", "latency": "0 s", "size": "10 GB"}


def run(disk: dict[str, Any], *statements: dict[str, Any]) -> hwsim.Run:
    cpu = {"kind": "cpu", "cores": 1, "flop": {"fp32": "1 GFLOP/s"}, "memory": {"bandwidth": "1 TB/s", "size": "1 GB"}}
    machine = {"hwsim": "machine/1", "class": "ideal", "parts": {"disk": disk, "cpu": cpu}}
    return hwsim.simulate(machine, {"hwsim": "workload/1", "program": [*statements, {"wait": "all"}]})


def times(count: int, statement: dict[str, Any]) -> dict[str, Any]:
    return {"repeat": {"times": count, "do": [statement]}}


def random(times: int) -> dict[str, Any]:
    return {"read": {"from": "disk", "bytes": "4 KiB", "times": times, "access": "random", "depth": 64}}


def test_reads_that_each_find_the_credits_full_say_how_long_one_op_would_take() -> None:
    whole, cut = run(VOLUME, random(12_000)), run(VOLUME, times(4, random(3000)))
    assert whole.makespan_s == pytest.approx(1 + 9000 / 1000)
    assert cut.makespan_s == pytest.approx(4.0)
    assert whole.warnings == ()
    [warning] = cut.warnings
    assert warning.text == (
        "the 4 reads of disk take 4.00 s in total, because each starts with full credits; "
        "one op with all bytes takes 10.0 s, so the run may be too fast"
    )


def test_writes_of_several_statements_to_one_cache_count_together() -> None:
    write = {"write": {"to": "disk", "bytes": "100 GB"}}
    [warning] = run(SSD, write, {"write": {"to": "disk", "bytes": "110 GB"}}).warnings
    assert warning.text.startswith(
        "the 2 writes to disk take 52.5 s in total, because each starts with an empty cache; one op with all bytes takes 2.00 min"
    )
    assert run(SSD, write).warnings == ()


def test_one_cache_and_one_store_of_credits_serve_ops_of_every_shape() -> None:
    [warning] = run(SSD, *({"write": {"to": "disk", "bytes": "25 GB", "depth": depth}} for depth in (1, 2, 3, 4, 5, 6))).warnings
    assert "6 writes to disk take 37.5 s in total, because each starts with an empty cache" in warning.text
    write = {"to": "disk", "bytes": "4 KiB", "times": 3000, "access": "random", "depth": 64}
    [warning] = run(VOLUME, random(3000), {"write": write}).warnings
    assert (
        "2 accesses of disk take 2.00 s in total, because each starts with full credits; one op with all bytes takes 4.00 s"
        in warning.text
    )


def test_sequential_reads_of_a_hard_disk_that_start_at_its_edge_are_told_and_a_region_answers() -> None:
    read = {"from": "disk", "bytes": "400 GB"}
    [warning] = run(HDD, times(10, {"read": read})).warnings
    assert "because each starts at the outer edge" in warning.text
    assert warning.text.endswith("if they access the same bytes, set `region`")
    assert run(HDD, times(10, {"read": {**read, "region": "400 GB"}})).warnings == ()


def test_random_writes_through_a_cache_are_told_but_synchronous_ones_have_none() -> None:
    write = {"to": "disk", "bytes": "4 KiB", "times": 20_000, "access": "random"}
    assert "with an empty cache" in run(CACHING, times(10, {"write": write})).warnings[0].text
    assert run(CACHING, times(10, {"write": {**write, "sync": True}})).warnings == ()


def test_ops_of_a_disk_that_remembers_nothing_are_not_warned_of() -> None:
    assert run(DISK, times(10, {"read": {"from": "disk", "bytes": "1 GB"}})).warnings == ()


def test_more_bytes_written_than_a_disk_holds_are_told_unless_they_go_over_a_region() -> None:
    write = {"to": "disk", "bytes": "4 GB"}
    assert run(DISK, times(2, {"write": write})).warnings == ()
    [warning] = run(DISK, times(3, {"write": write})).warnings
    assert warning.text.startswith("12 GB are written to disk, which holds 10 GB;")
    assert run(DISK, times(3, {"write": {**write, "region": "4 GB"}})).warnings == ()


def test_a_working_set_larger_than_the_memory_is_told() -> None:
    access = {"device": "cpu", "count": 1e6, "pattern": "random"}
    assert run(DISK, {"access": {**access, "working_set": "1 GB"}}).warnings == ()
    [warning] = run(DISK, {"access": {**access, "working_set": "2 GB"}}).warnings
    assert warning.text == (
        "a working set of 2 GB exceeds the memory of cpu (1 GB); swapping is not simulated, so the run is too fast"
    )
