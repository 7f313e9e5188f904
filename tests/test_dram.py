from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hwsim import api
from hwsim.devices import Memory
from hwsim.devices.accesses import Accesses
from hwsim.devices.dram import Dram
from hwsim.devices.roofline import CannotCompute
from hwsim.spec import SpecError, names

PARTS = names("memory")


def part(name: str) -> Dram:
    machine = api.load_machine(f"hwsim: machine/1\nclass: ideal\nparts: {{mem: {{kind: memory, use: {name}}}}}\n")
    model = machine.device("mem").model
    assert isinstance(model, Memory)
    assert model.dram is not None
    return model.dram


def loaded(text: str) -> Any:
    return api.load_machine(f"hwsim: machine/1\nclass: ideal\nparts: {{{text}}}\n")


@st.composite
def drams(draw: st.DrawFn) -> Dram:
    def time(low: float, high: float) -> float:
        return draw(st.floats(low, high)) * 1e-9

    ras, rp, groups = time(20, 80), time(5, 40), draw(st.sampled_from([1, 2, 4, 8]))
    return Dram(
        rate=draw(st.floats(1e8, 3e10)),
        width=draw(st.sampled_from([16, 32, 64, 128])),
        access=draw(st.sampled_from([32, 64])),
        banks=groups * draw(st.integers(1, 8)),
        tRCD=time(5, 40),
        tCL=time(5, 40),
        tRP=rp,
        tRAS=ras,
        tRC=ras + rp,
        tRTP=time(0, 10),
        tRRD_S=time(0, 10),
        tFAW=time(0, 40),
        tCCD_S=time(0, 5),
        tCCD_L=time(0, 10),
        tRFC=time(0, 500),
        channels=draw(st.integers(1, 8)),
        pseudo_channels=draw(st.sampled_from([1, 2])),
        bank_groups=groups,
        turnaround=time(0, 60),
        row_commands=draw(st.sampled_from([0.0, 3e-9])),
        open_cost=draw(st.sampled_from([0.0, 1e-9])),
        queue=draw(st.integers(1, 128)),
        controller=time(0, 60),
    )


shares = st.floats(0, 1)
NEARLY = 1 + 1e-9

# ---- the closed form's laws ----


@given(drams(), st.integers(1, 64), shares, st.floats(0.1, 1000))
def test_every_rate_is_finite_positive_and_within_the_pins(dram: Dram, banks: int, hit: float, flying: float) -> None:
    for rate in (
        dram.random_rate(banks, hit),
        dram.random_rate(banks, hit, flying),
        dram.random_rate(banks, hit, regular=True),
        dram.stream() / dram.access,
    ):
        assert 0 < rate <= dram.peak / dram.access * NEARLY
    assert 0 < dram.latency("hit") < dram.latency("closed") < dram.latency("conflict") < 1


@given(drams(), st.integers(1, 63), shares, shares)
def test_more_banks_more_hits_and_more_in_flight_are_never_slower(dram: Dram, banks: int, hit: float, more: float) -> None:
    rate = dram.random_rate(banks, hit)
    assert dram.random_rate(banks + 1, hit) * NEARLY >= rate or dram.pseudo_channels > 1
    assert dram.random_rate(banks, max(hit, more)) * NEARLY >= dram.random_rate(banks, min(hit, more))
    assert dram.random_rate(banks, hit, 8.0) * NEARLY >= dram.random_rate(banks, hit, 4.0)
    assert dram.random_rate(banks, hit, regular=True) * NEARLY >= rate
    assert rate * NEARLY >= dram.random_rate(banks, hit, 4.0)


@pytest.mark.parametrize(
    "key", ["tRCD", "tRP", "tRTP", "tRRD_S", "tFAW", "tCCD_S", "tCCD_L", "tRFC", "row_commands", "open_cost", "tCL"]
)
@given(dram=drams(), hit=shares, factor=st.floats(0, 1))
def test_a_shorter_timing_is_never_slower(key: str, dram: Dram, hit: float, factor: float) -> None:
    better = replace(dram, **{key: getattr(dram, key) * factor})
    assert better.random_rate(None, hit) * NEARLY >= dram.random_rate(None, hit)
    assert better.stream() * NEARLY >= dram.stream()
    assert better.latency() <= dram.latency() * NEARLY


@given(drams(), st.integers(1, 4), shares)
def test_more_channels_serve_more(dram: Dram, more: int, hit: float) -> None:
    wider = replace(dram, channels=dram.channels + more)
    assert wider.random_rate(None, hit) > dram.random_rate(None, hit)
    assert wider.random_rate(None, hit, 16.0) * NEARLY >= dram.random_rate(None, hit, 16.0)
    assert wider.stream() > dram.stream()


@given(drams(), shares, shares)
def test_changing_direction_costs_and_load_waits(dram: Dram, one: float, other: float) -> None:
    assert 0 < dram.read_write_factor(one) <= 1
    assert dram.read_write_factor(1) == dram.read_write_factor(0) == 1  # exactly: nothing to divide
    assert dram.read_write_factor(0.5) <= dram.read_write_factor(one)
    assert dram.loaded_latency(max(one, other)) >= dram.loaded_latency(min(one, other)) >= dram.latency()


@given(drams())
def test_limits_are_reached(dram: Dram) -> None:
    assert dram.random_rate(1, 0.0, 1e-3) == pytest.approx(1e-3 / dram.latency(), rel=1e-6)
    free = replace(dram, tRFC=0.0, row_commands=0.0, open_cost=0.0, tFAW=0.0, tRRD_S=0.0)
    one = min(1 / free.tRC, 1 / (free.tRCD + free.tRTP + free.tRP), 1 / max(free.tBL, free.tCCD_S, free.tCCD_L))
    assert free.random_rate(1) / free.channels == pytest.approx(one)


# ---- parts and the text ----


def test_a_real_channel_has_more_than_four_banks_worth() -> None:
    real = part("ddr4-3200")
    assert real.random_rate(banks=1) == pytest.approx(20.6e6, rel=0.01)
    assert 8 < real.random_rate() / real.random_rate(banks=1) < 9
    assert real.stream() == pytest.approx(24.3e9, rel=0.01)


@pytest.mark.parametrize("name", PARTS)
def test_every_part_is_sound(name: str) -> None:
    dram = part(name)
    assert list(dram.problems()) == []
    assert dram.tRC >= dram.tRAS
    assert 0.8 < dram.stream() / dram.peak <= 1
    assert dram.random_rate(1) < dram.random_rate()
    assert 0 <= dram.refresh < 0.15


@pytest.mark.parametrize(
    ("name", "channels", "gigabytes"),
    [("ddr4-3200", 8, 204.8), ("ddr5-4800", 8, 307.2), ("hbm2-1756", 32, 899), ("hbm2e-3200", 40, 2048), ("hbm3-5200", 80, 3328),
     ("hbm3e-6250", 96, 4800), ("gddr6-14000", 22, 616), ("gddr6x-21000", 24, 1008),
     ("gddr5-5000", 12, 240), ("lpddr4x-4266", 4, 34.1)],
)  # fmt: skip
def test_pins_of_all_channels_are_what_the_data_sheets_of_devices_say(name: str, channels: int, gigabytes: float) -> None:
    assert replace(part(name), channels=channels).peak == pytest.approx(gigabytes * 1e9, rel=0.002)


# ---- in files ----


def test_a_memory_has_its_bandwidth_from_its_dram() -> None:
    machine = loaded("cpu: {kind: cpu, use: d2l-server-cpu, memory: {use: ddr4-3200, channels: 4, bandwidth: 90 GB/s}}")
    assert machine.device("cpu").model.memory.bandwidth == pytest.approx(90e9)
    machine = loaded("gpu: {kind: gpu, flop: {fp32: 1 TFLOP/s}, memory: {use: hbm2e-3200, channels: 40}}")
    memory = machine.device("gpu").model.memory
    assert memory.dram.channels == 40
    assert memory.bandwidth == pytest.approx(memory.dram.stream())
    assert loaded("mem: {kind: memory, use: ddr4-3200, channels: 2}").device("mem").model.bandwidth == pytest.approx(
        48.6e9, rel=0.01
    )


def test_where_a_bandwidth_is_from_is_said() -> None:
    machine = loaded("mem: {kind: memory, use: ddr4-3200}")
    cost = machine.device("mem").model.access("mem", Accesses(count=1000, size=64))
    [line] = [term for term in cost.why if term.label == "memory"]
    assert "dram.rate: standard" in str(line.inputs[1][2])


@pytest.mark.parametrize(
    ("memory", "message"),
    [
        ("{size: 16 GB}", "requires a `bandwidth`"),
        ("{bandwidth: 1 GB/s, channels: 2}", "`channels` requires a DRAM"),
        ("{use: ddr4-3200, channels: 4, max_channels: 2}", "expected at most the device's 2 memory channels, got 4"),
        ("{use: ddr4-3200, channels: 2, dimms: 1}", "a DIMM for each of 2 channels, got 1"),
        ("{use: v100-sxm2-16gb}", "there is no memory 'v100-sxm2-16gb'"),
        ("{use: ddr4-3200, dram: {tRFC: 10 us, tREFI: 1 us}}", "refresh would take all of the time"),
        ("{use: ddr4-3200, dram: {tRC: 10 s}}", "expected less than tREFI, 7.80 us, got 10.0 s: no access would end between"),
        ("{use: ddr4-3200, dram: {rate: 1 T/s}}", "expected less than tREFI, 7.80 us, got 8.00 s"),
    ],
)
def test_what_cannot_be_is_a_mistake(memory: str, message: str) -> None:
    with pytest.raises(SpecError, match=message):
        loaded(f"gpu: {{kind: gpu, flop: {{fp32: 1 TFLOP/s}}, memory: {memory}}}")


def test_a_memory_that_is_given_another_dram_keeps_nothing_of_the_first() -> None:
    run = api.simulate(
        {"hwsim": "machine/1", "class": "ideal", "parts": {"mem": {"kind": "memory", "use": "ddr4-3200"}}},
        {"hwsim": "workload/1", "program": [{"access": {"device": "mem", "count": 1000, "bytes": "64 B"}}]},
        set={"machine.mem.use": "hbm3-6400"},
    )
    assert run.makespan_s < 64e3 / 40e9


# ---- the op `access` ----


def seconds(pattern: str, count: float = 1e6, **keys: Any) -> float:
    model = Memory(dram=part("ddr4-3200"))
    cost = model.access("mem", Accesses(count=count, size=64, pattern=pattern, **keys))  # type: ignore[arg-type]
    return cost.demand.alone({"mem.memory": 1.0})


def test_random_reads_are_slower_than_a_burst_and_a_chain_slower_still() -> None:
    assert seconds("sequential") < seconds("random") < min(seconds("random", banks=1), seconds("dependent"))
    assert seconds("dependent", chains=4) == pytest.approx(seconds("dependent") / 4)
    assert seconds("strided", stride=64.0) == pytest.approx(seconds("sequential"))
    assert seconds("random", row_hit=0.9) < seconds("random")
    assert seconds("sequential", write=0.5) > seconds("sequential", write=1.0)


def test_a_derivation_gives_the_duration() -> None:
    model = Memory(dram=part("hbm2-2000"))
    for pattern in ("sequential", "strided", "random", "dependent"):
        cost = model.access("m", Accesses(count=1000, size=8, pattern=pattern, stride=256))
        latency = sum(term.seconds for term in cost.why if term.kind == "latency")
        longest = max(term.seconds for term in cost.why if term.kind != "latency")
        assert cost.demand.alone({"m.memory": 1.0}) == pytest.approx(latency + longest)


def test_no_dram_no_access() -> None:
    with pytest.raises(CannotCompute, match="has no DRAM timings"):
        Memory(1e9).access("mem", Accesses(count=1))


def test_banks_are_for_memories() -> None:
    op = {"access": {"device": "cpu", "count": 10, "pattern": "random", "banks": 2}}
    with pytest.raises(SpecError, match="`banks` and `row_hit` require a memory"):
        api.simulate("d2l-laptop", {"hwsim": "workload/1", "program": [op]})


@pytest.mark.parametrize("channels", [1, 11, 22, 44])
def test_a_stream_of_a_gpu_takes_the_bus_of_all_its_channels(channels: int) -> None:
    """bits / 8 x transfers per second at the pins (352 bit x 14 GT/s: 616 GB/s), of which a stream reaches nine tenths."""
    run = api.simulate("d2l-gpu-memory", "d2l/gpu-stream", set={"machine.gpu.memory.channels": channels}, expect=False)
    reached = 8e9 / run.makespan_s / (channels * 16 / 8 * 14e9)
    assert reached == pytest.approx(558.948 / 616, rel=1e-4)
