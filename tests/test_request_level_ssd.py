"""SSD request by request: what holds whatever the drive, and where the outcome is known exactly."""

from __future__ import annotations

import math
import random
from dataclasses import replace
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hwsim.devices.flash import Flash
from hwsim.devices.ssd import Ssd
from hwsim.families.requests.flash_map import PlaneMap, worn_planes
from hwsim.families.requests.load import steady_rate
from hwsim.families.requests.requests import NoRequestSimulation, RequestColumns, columns, poisson, serve
from hwsim.families.requests.ssd import SsdSimulation, ssd_play

FLASH = Flash(
    channels=4,
    chips=2,
    page=8192.0,
    read=75e-6,
    program=750e-6,
    erase=3.8e-3,
    pages_per_block=64,
    channel=333e6,
    command=0.3e-6,
    blocks=64,
)
TRANSFER = 4096 / 333e6


def at_random(count: int, size: int = 4096, span: int = 1 << 28, seed: int = 1) -> list[int]:
    draw = random.Random(seed).random
    return [int(draw() * (span // 8192)) * 8192 for _ in range(count)]


def latencies(served: RequestColumns) -> list[float]:
    return [end - begin for begin, end in zip(served.issued, served.finish, strict=True)]


def rate(flash: Flash, depth: int, *, write: bool = False, count: int = 3000) -> float:
    return steady_rate(serve(SsdSimulation(flash), columns(at_random(count), 4096, write=write, depth=depth)))


@pytest.mark.parametrize(
    ("link", "size", "write", "expected"),
    [
        (4e9, 4096, False, 0.3e-6 + 75e-6 + TRANSFER + 4096 / 4e9 + 1e-6),
        (4e9, 4096, True, 4096 / 4e9 + 0.3e-6 + TRANSFER + 750e-6 + 1e-6),
        (math.inf, 4 * 8192, False, 0.3e-6 + 75e-6 + 8192 / 333e6 + 1e-6),  # its pages go to different channels
    ],
)
def test_one_request_alone_takes_the_sum_of_its_steps(link: float, size: int, write: bool, expected: float) -> None:
    served = serve(SsdSimulation(FLASH, link=link, overhead=1e-6), columns([0], size, write=write))
    assert served.finish[0] == pytest.approx(expected)


def test_the_same_requests_have_the_same_outcome_however_time_is_cut() -> None:
    whole = serve(SsdSimulation(FLASH), columns(at_random(500), 4096, depth=16))
    simulation, pieces = SsdSimulation(FLASH), columns(at_random(500), 4096, depth=16)
    simulation.offer(pieces)
    now = 0.0
    while simulation.due() < math.inf:
        simulation.advance(now)
        now += 17e-6
    assert pieces.finish == whole.finish
    assert pieces.left == 0


def test_a_deeper_queue_more_chips_and_more_channels_are_never_slower() -> None:
    depths = [rate(FLASH, depth) for depth in (1, 2, 4, 8, 16, 32, 64)]
    chips = [rate(replace(FLASH, chips=chips), 32) for chips in (1, 2, 4, 8)]
    channels = [rate(replace(FLASH, channels=channels), 32) for channels in (1, 2, 4, 8)]
    for found in (depths, chips, channels):
        assert all(more >= 0.98 * less for less, more in pairwise(found))


@settings(max_examples=15, deadline=None)
@given(st.integers(1, 64), st.integers(1, 4), st.integers(1, 4), st.booleans(), st.integers(1, 1 << 17))
def test_no_chip_and_no_channel_works_more_than_all_the_time(
    depth: int, channels: int, chips: int, write: bool, size: int
) -> None:
    flash = replace(FLASH, channels=channels, chips=chips, planes=2)
    simulation = SsdSimulation(flash)
    served = serve(simulation, columns(at_random(200), size, write=write, depth=depth))
    assert served.left == 0
    assert all(0 <= wait < math.inf for wait in latencies(served))
    assert simulation.counters["chip_s"] <= served.end * flash.all_chips * (1 + 1e-9)
    assert simulation.counters["channel_s"] <= served.end * flash.channels * (1 + 1e-9)
    assert served.issued.count(0.0) == min(depth, 200)


def test_one_chip_with_random_arrivals_is_the_queue_with_constant_service() -> None:
    """M/D/1: mean wait = rho / (2 (1 - rho)) x service (Pollaczek and Khinchine)."""
    flash = replace(FLASH, channels=1, chips=1)
    service = 0.3e-6 + 75e-6 + TRANSFER
    for load in (0.3, 0.6):
        served = serve(SsdSimulation(flash), columns(at_random(30_000), 4096, at=poisson(load / service, 30_000, seed=5)))
        mean = sum(latencies(served)) / len(served)
        assert mean == pytest.approx(service * (1 + load / (2 * (1 - load))), rel=0.05)


def test_write_amplification_is_at_least_one_and_falls_with_over_provisioning() -> None:
    found = []
    for spare in (0.12, 0.2, 0.3, 0.5):
        simulation = SsdSimulation(FLASH, planes=worn_planes(64, 64, spare, 0.05))
        serve(simulation, columns(at_random(8000, span=8 * 8192 * int(64 * 64 * (1 - spare))), 8192, write=True, depth=16))
        found.append(simulation.counters["write_amplification"])
    assert found == sorted(found, reverse=True)
    assert found[-1] >= 1
    assert found[0] > 2.5


def test_writing_in_order_moves_no_pages() -> None:
    plane = PlaneMap(logical=3000, blocks=64, pages=64, reserve=3)
    for page in list(range(3000)) * 4:
        plane.write(page)
    assert plane.moved < 0.01 * 4 * 3000


@settings(max_examples=30, deadline=None)
@given(st.lists(st.integers(0, 30), min_size=50, max_size=400))
def test_the_page_map_loses_no_page(pages: list[int]) -> None:
    plane = PlaneMap(logical=31, blocks=12, pages=4, reserve=2)
    for page in pages:
        plane.write(page)
    places = [plane.where[page] for page in set(pages)]
    assert len(set(places)) == len(places)
    assert all(place >= 0 for place in places)
    assert len(plane.free) >= 1


def test_a_page_map_without_room_is_refused() -> None:
    with pytest.raises(ValueError, match="do not fit"):
        PlaneMap(logical=64 * 64, blocks=64, pages=64, reserve=2)


def test_a_collection_is_spread_over_the_writes_to_the_block_that_it_freed() -> None:
    simulation = SsdSimulation(FLASH, planes=worn_planes(64, 64, 0.2, 0.05))
    waits = latencies(serve(simulation, columns(at_random(6000, span=8 * 8192 * 3200), 8192, write=True, depth=1)))
    assert max(waits) < 10 * min(waits)  # all at once it is 50 pages moved


def test_reads_behind_writes_wait_longer() -> None:
    draw = random.Random(3).random
    mixed = [draw() < 0.3 for _ in range(4000)]
    alone = serve(SsdSimulation(FLASH), columns(at_random(4000), 4096, depth=8))
    beside = serve(SsdSimulation(FLASH), columns(at_random(4000), 4096, write=mixed, depth=8))
    reads = sorted(wait for wait, write in zip(latencies(beside), mixed, strict=True) if not write)
    assert reads[int(0.99 * len(reads))] > 3 * sorted(latencies(alone))[int(0.99 * len(alone))]


def test_a_drive_known_by_its_data_sheet_alone_is_refused() -> None:
    with pytest.raises(NoRequestSimulation, match="scratch has no `flash`") as error:
        ssd_play(Ssd(read=3e9, latency=80e-6), "scratch")
    assert "mqsim-default" in (error.value.hint or "")


def test_simulation_and_closed_form_agree_on_one_read() -> None:
    drive = Ssd(flash=FLASH, interface=3e9, controller=2e-6)
    served = serve(ssd_play(drive).simulation, columns([0], 4096))
    assert served.finish[0] == pytest.approx(drive.one("read", 4096.0), rel=0.02)


@pytest.mark.parametrize(("state", "erased"), [("fresh", 0.0), ("steady", 1.0)])
def test_writes_in_sequence_move_no_page_twice_and_erase_what_they_fill(state: Any, erased: float) -> None:
    """16 dies on 4 channels of 1 GB/s: a page of 16 KiB is sent in 16.4 us and programmed in 600 us; 64 share an erase."""
    flash = Flash(channels=4, chips=4, page=16384.0, read=60e-6, program=600e-6, erase=6.4e-3, pages_per_block=64, channel=1e9)
    drive = Ssd(flash=flash, size=1e12, state=state)
    a_page = 600e-6 + 16.384e-6 + erased * 6.4e-3 / 64
    assert drive.bandwidth("write") == pytest.approx(16 / a_page * 16384)
