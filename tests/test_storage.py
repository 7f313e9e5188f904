"""Storage: what must hold for every kind of it."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from hwsim.devices import Storage
from hwsim.devices.arm import Seek
from hwsim.devices.contention import rate_at
from hwsim.devices.disk import Disk
from hwsim.devices.filesystem import Filesystem
from hwsim.devices.flash import Endurance, Flash, amplification
from hwsim.devices.hdd import Hdd
from hwsim.devices.raid import Raid, RaidLevel
from hwsim.devices.ssd import Ssd, WriteCache
from hwsim.devices.storage import Access, Direction, StorageAccesses, drain_time, mixed_cost
from hwsim.devices.volume import Volume
from tests.test_devices import NAME, alone, check

rates = st.floats(1e6, 1e11)
iops = st.floats(10.0, 1e7)
times = st.floats(1e-6, 1e-1)
waits = st.one_of(st.just(0.0), times)
sizes = st.floats(1e6, 1e14)
sharpness = st.floats(0.8, 12.0)


@st.composite
def seeks(draw: st.DrawFn) -> Seek:
    track, average, full = sorted(draw(st.tuples(*[st.floats(1e-4, 2e-2)] * 3)))
    return Seek(cylinders=draw(st.integers(2, 500_000)), track=track, average=average, full=full)


@st.composite
def hdds(draw: st.DrawFn) -> Hdd:
    inner, outer = sorted(draw(st.tuples(rates, rates)))
    cache = draw(st.one_of(st.just(0.0), sizes))
    return Hdd(
        rpm=draw(st.floats(1000, 30_000)),
        seek=draw(seeks()),
        outer=outer,
        inner=draw(st.sampled_from([inner, None])),
        size=draw(st.one_of(st.none(), sizes)),
        overhead=draw(waits),
        settle=draw(waits),
        queue=draw(st.integers(1, 256)),
        gain=draw(st.floats(0, 1)),
        cache=cache,
        write_cache=cache > 0 and draw(st.booleans()),
        interface=draw(st.one_of(st.none(), rates)),
    )


flashes = st.builds(
    Flash,
    channels=st.integers(1, 64),
    chips=st.integers(1, 64),
    page=st.sampled_from([4096.0, 8192.0, 16384.0]),
    read=st.floats(1e-6, 1e-4),
    program=st.floats(1e-5, 5e-3),
    erase=st.floats(0, 1e-2),
    pages_per_block=st.integers(16, 2048),
    channel=st.floats(1e7, 5e9),
    command=st.floats(0, 1e-6),
    dies=st.integers(1, 4),
    planes=st.integers(1, 4),
)


@st.composite
def ssds(draw: st.DrawFn) -> Ssd:
    flash = draw(st.one_of(st.none(), flashes))
    stated = flash is None
    number: Any = lambda strategy: draw(strategy if stated else st.one_of(st.none(), strategy))  # noqa: E731
    drive = Ssd(
        read=number(rates),
        write=draw(st.one_of(st.none(), rates)),
        latency=number(times),
        write_latency=draw(st.one_of(st.none(), times)),
        iops=draw(st.one_of(st.none(), iops)),
        write_iops=draw(st.one_of(st.none(), iops)),
        sharpness=draw(sharpness),
        queue=draw(st.integers(1, 65536)),
        interface=draw(st.one_of(st.none(), rates)),
        controller=draw(waits),
        turnaround=draw(waits),
        flush=draw(waits),
        flash=flash,
        unit=draw(st.sampled_from([None, 512.0, 65536.0])),
        over_provisioning=draw(st.one_of(st.none(), st.floats(0, 0.9))),
        reserve=draw(st.floats(0, 0.2)),
        state=draw(st.sampled_from(["fresh", "steady"])),
        size=draw(sizes),
        endurance=draw(st.sampled_from([None, Endurance(written=1e15), Endurance(per_day=1.0), Endurance(cycles=3000.0)])),
    )
    if draw(st.booleans()):
        cache = WriteCache(
            size=draw(sizes), write=drive.write_bandwidth * draw(st.floats(1, 10)), latency=draw(st.none() | times)
        )
        drive = replace(drive, cache=cache)
    return drive


volumes = st.builds(
    Volume,
    iops=iops,
    bandwidth=rates,
    iops_per_gib=st.floats(0, 50),
    burst_iops=st.one_of(st.none(), iops),
    credits=st.floats(0, 1e7),
    burst_bandwidth=st.one_of(st.none(), rates),
    byte_credits=st.one_of(st.just(0.0), sizes),
    chunk=st.sampled_from([16384.0, 262144.0]),
    latency=waits,
    queue=st.integers(1, 65536),
    size=sizes,
)
filesystems = st.builds(
    Filesystem,
    bandwidth=rates,
    write_bandwidth=st.one_of(st.none(), rates),
    client=st.one_of(st.none(), rates),
    stream=st.one_of(st.none(), rates),
    stripes=st.integers(1, 64),
    requests=st.one_of(st.none(), iops),
    latency=waits,
    queue=st.integers(1, 65536),
)
disks = st.builds(Disk, read_bandwidth=rates, latency=waits, iops=st.one_of(st.none(), iops), queue=st.integers(1, 1024))


@st.composite
def raids(draw: st.DrawFn) -> Raid:
    levels: list[RaidLevel] = [0, 1, 5, 6, 10]
    level = draw(st.sampled_from(levels))
    members = 2 * draw(st.integers(2, 12))
    member: dict[str, Any] = draw(
        st.one_of(
            st.fixed_dictionaries({"hdd": hdds()}),
            st.fixed_dictionaries({"ssd": ssds()}),
            st.fixed_dictionaries({"volume": volumes}),
        )
    )
    return Raid(level=level, members=members, stripe=draw(st.sampled_from([4096.0, 65536.0, 1048576.0])), **member)


storage: st.SearchStrategy[Storage] = st.one_of(hdds(), ssds(), volumes, filesystems, raids(), disks)
access: st.SearchStrategy[Access] = st.sampled_from(["sequential", "random"])
directions: st.SearchStrategy[Direction] = st.sampled_from(["read", "write"])
questions = st.builds(
    StorageAccesses,
    size=st.floats(1.0, 1e9),
    times=st.integers(1, 100_000),
    access=access,
    depth=st.integers(1, 512),
    sync=st.booleans(),
)


def seconds(device: Storage, direction: Direction, asked: StorageAccesses) -> float:
    return alone(device, device.serve(NAME, direction, asked))


@given(storage, directions, questions)
def test_costs_are_finite_and_their_derivation_adds_up(device: Storage, direction: Direction, asked: StorageAccesses) -> None:
    for question in (asked, replace(asked, times=0), replace(asked, size=0.0)):
        cost = device.serve(NAME, direction, question)
        check(cost, device.capacities(NAME))
        assert math.isfinite(alone(device, cost))


@given(storage, questions, st.floats(0.01, 0.99))
def test_a_mix_of_reads_and_writes_adds_up_and_takes_its_parts_at_least(
    device: Storage, asked: StorageAccesses, share: float
) -> None:
    cost = mixed_cost(device, NAME, replace(asked, written=share))
    check(cost, device.capacities(NAME))
    for direction, part in (("read", 1 - share), ("write", share)):
        some = seconds(device, direction, replace(asked, times=asked.times * part))  # type: ignore[arg-type]
        assert alone(device, cost) >= some * (1 - 1e-9)


@given(storage, directions, questions, st.integers(1, 1000), st.floats(1, 3))
def test_more_or_larger_accesses_are_never_faster(
    device: Storage, direction: Direction, asked: StorageAccesses, more: int, larger: float
) -> None:
    some = seconds(device, direction, asked) * (1 - 1e-9)
    assert seconds(device, direction, replace(asked, times=asked.times + more)) >= some
    assert seconds(device, direction, replace(asked, size=asked.size * larger)) >= some


@given(storage, directions, questions, st.integers(1, 1000))
def test_more_under_way_is_never_slower(device: Storage, direction: Direction, asked: StorageAccesses, more: int) -> None:
    some = seconds(device, direction, asked) * (1 + 1e-9)
    assert seconds(device, direction, replace(asked, depth=asked.depth + more)) <= some


@given(storage, questions)
def test_a_write_that_must_be_on_the_medium_is_never_faster(device: Storage, asked: StorageAccesses) -> None:
    assert seconds(device, "write", replace(asked, sync=True)) >= seconds(device, "write", replace(asked, sync=False)) * (
        1 - 1e-9
    )


def never_slower(device: Storage, better: Storage, direction: Direction, asked: StorageAccesses) -> None:
    assert seconds(better, direction, asked) <= seconds(device, direction, asked) * (1 + 1e-9)


@given(hdds(), directions, questions, st.floats(1, 4))
def test_a_better_hard_disk_is_never_slower(disk: Hdd, direction: Direction, asked: StorageAccesses, factor: float) -> None:
    track, average, full = ((seek or 0.0) / factor for seek in (disk.seek.track, disk.seek.average, disk.seek.full))
    quicker = Seek(disk.seek.cylinders, track=track, average=average, full=full)
    never_slower(disk, replace(disk, rpm=disk.rpm * factor), direction, asked)
    never_slower(disk, replace(disk, seek=quicker), direction, asked)
    never_slower(
        disk, replace(disk, outer=(disk.outer or 0) * factor, inner=(disk.inner or disk.outer or 0) * factor), direction, asked
    )
    never_slower(disk, replace(disk, overhead=disk.overhead / factor), direction, asked)
    never_slower(disk, replace(disk, queue=disk.queue * 2), direction, asked)


@given(ssds(), directions, questions, st.floats(1, 4))
def test_a_better_ssd_is_never_slower(drive: Ssd, direction: Direction, asked: StorageAccesses, factor: float) -> None:
    for key in ("read", "write", "iops", "write_iops", "interface"):
        if (value := getattr(drive, key)) is not None and (drive.cache is None or key not in ("write", "interface")):
            never_slower(drive, replace(drive, **{key: value * factor}), direction, asked)
    for key in ("latency", "write_latency", "controller", "flush"):
        if (value := getattr(drive, key)) is not None:
            never_slower(drive, replace(drive, **{key: value / factor}), direction, asked)


@given(ssds(), directions, questions, st.floats(0.01, 1))
@example(
    Ssd(read=7e9, latency=1e-5, write_iops=1e5, unit=512.0, size=1e12),
    "write", StorageAccesses(size=512, times=100_000, access="random", depth=512), 1.0,
)  # fmt: skip
def test_no_ssd_is_faster_than_its_interface_and_its_accesses_a_second(
    drive: Ssd, direction: Direction, asked: StorageAccesses, part: float
) -> None:
    took, most = seconds(drive, direction, asked), drive.iops if direction == "read" else drive.write_iops
    cached = direction == "write" and drive.cache is not None
    assert most is None or cached or asked.access == "sequential" or took >= asked.times / most * (1 - 1e-9)
    interface = part * asked.bytes / took
    assert seconds(replace(drive, interface=interface), direction, asked) >= took / part * (1 - 1e-9)
    if drive.flash is not None:  # one access goes through it after, or before, the flash
        bare = replace(drive, interface=interface, latency=None, write_latency=None, cache=None)
        one_s = drive.controller + drive.flash.one(direction, asked.size) + asked.size / interface
        assert seconds(bare, direction, replace(asked, times=1, access="random")) >= one_s * (1 - 1e-9)


@given(ssds(), directions, questions, flashes, st.integers(2, 4))
def test_better_flash_is_never_slower(
    drive: Ssd, direction: Direction, asked: StorageAccesses, flash: Flash, factor: int
) -> None:
    drive = replace(
        drive, flash=flash, read=None, write=None, latency=None, write_latency=None, iops=None, write_iops=None, cache=None
    )
    for key in ("channels", "chips", "channel"):
        better = replace(drive, flash=replace(flash, **{key: getattr(flash, key) * factor}))
        if key == "channel" or asked.access == "random":  # a longer stripe takes a deeper queue to use all planes
            never_slower(drive, better, direction, asked)
    for key in ("read", "program", "erase", "command"):
        never_slower(drive, replace(drive, flash=replace(flash, **{key: getattr(flash, key) / factor})), direction, asked)


@given(volumes, directions, questions, st.floats(1, 4))
def test_a_better_volume_is_never_slower(volume: Volume, direction: Direction, asked: StorageAccesses, factor: float) -> None:
    for key in ("iops", "bandwidth", "credits", "byte_credits", "burst_iops", "burst_bandwidth"):
        if (value := getattr(volume, key)) is not None:
            never_slower(volume, replace(volume, **{key: value * factor}), direction, asked)


@given(filesystems, directions, questions, st.integers(1, 4))
def test_a_better_file_system_is_never_slower(
    system: Filesystem, direction: Direction, asked: StorageAccesses, factor: int
) -> None:
    for key in ("bandwidth", "client", "stream", "stripes", "requests"):
        if (value := getattr(system, key)) is not None:
            never_slower(system, replace(system, **{key: value * factor}), direction, asked)


@given(raids(), directions, questions, st.integers(1, 4))
def test_more_members_are_never_slower(array: Raid, direction: Direction, asked: StorageAccesses, more: int) -> None:
    # Of fewer, a small write reads the rest of the stripe, which is less.
    least = {5: 4, 6: 6}.get(array.level, 1) if direction == "write" else 1
    if (array.level != 1 or direction == "read") and array.members >= least:  # every copy has to be written
        if asked.access == "random":  # a larger one is spread over more arms, each of which has to move
            asked = replace(asked, size=min(asked.size, array.stripe))
        never_slower(array, replace(array, members=array.members + 2 * more), direction, asked)


@given(hdds(), directions, questions, st.floats(0.01, 1.0), st.floats(0.1, 1.0))
def test_a_smaller_region_is_never_slower(
    disk: Hdd, direction: Direction, asked: StorageAccesses, part: float, less: float
) -> None:
    disk = replace(disk, size=1e12)
    wide, narrow = (replace(asked, access="random", region=size * 1e12) for size in (part, part * less))
    assert seconds(disk, direction, narrow) <= seconds(disk, direction, wide) * (1 + 1e-9)


# ---- shapes ----


@given(st.floats(1, 1e6), times, iops, st.floats(0.5, 1e3))
def test_the_rate_over_depth_is_exact_at_both_ends_and_below_both_bounds(depth: float, one: float, most: float, p: float) -> None:
    found = rate_at(depth, one, most, p)
    assert 0 < found <= min(depth / one, most) * (1 + 1e-9)
    assert rate_at(1.0, one, most, p) == pytest.approx(min(1 / one, most))
    assert found == pytest.approx(min(depth / one, most), rel=1e-3) or p < 300 or one * most < 1
    assert rate_at(1e15, one, most, p) == pytest.approx(most, rel=1e-2) or p < 2


@given(st.integers(1, 300), st.integers(2, 40), st.integers(1, 20), st.integers(0, 100))
def test_the_token_bucket_is_exact(amount: int, fast: int, steady: int, stock: int) -> None:
    """Brute force: each step of 1/64 s some is served, as much as there are tokens for."""
    step, tokens, left, now = 1 / 64, float(stock), float(amount), 0.0
    while left > 1e-9:
        go = min(fast * step, tokens + steady * step, left) if fast > steady else min(fast * step, left)
        tokens = min(float(stock), tokens + steady * step - go) if fast > steady else tokens
        left, now = left - go, now + step
    assert drain_time(amount, fast, steady, stock) == pytest.approx(now, abs=3 * step)


@given(st.floats(0.0, 0.95), st.floats(0.0, 0.04))
def test_write_amplification_falls_with_over_provisioning_to_one(part: float, more: float) -> None:
    assert 1.0 <= amplification(part + more) <= amplification(part) * (1 + 1e-9)
    assert amplification(part, 0.05) >= amplification(part) * (1 - 1e-9)
    assert amplification(1.0) == 1.0


def test_write_amplification_solves_its_equation() -> None:
    for part in (0.07, 0.12, 0.28, 0.5):
        p = 1 - 1 / amplification(part)
        assert (p - 1) / math.log(p) == pytest.approx(1 - part)


@given(seeks(), st.floats(0.01, 1.0))
def test_the_mean_seek_is_the_mean_of_the_curve_between_two_random_places(seek: Seek, part: float) -> None:
    n, width, curve = 4000, part * seek.cylinders, seek.curve()
    steps = [(index + 0.5) / n for index in range(n)]
    by_hand = (
        sum(
            2 * (1 - x) * (curve.a + curve.b * math.sqrt(x * width) if x * width <= curve.bend else curve.c + curve.e * x * width)
            for x in steps
        )
        / n
    )
    assert seek.within(part).mean == pytest.approx(max(0.0, by_hand), rel=2e-3, abs=1e-6)
    assert seek.within(part).mean >= seek.within(part / 2).mean * (1 - 1e-9)


@given(hdds(), st.floats(0.0, 1.0))
def test_a_stretch_takes_as_long_as_its_tracks_one_by_one(disk: Hdd, part: float) -> None:
    n = 4000  # the rate may fall to 0 at the inner edge, where the sum is the least exact
    by_hand = sum(part / n / disk.rate(part * (index + 0.5) / n) for index in range(n))
    assert by_hand * disk.stretch(part) == pytest.approx(part, rel=5e-3)
