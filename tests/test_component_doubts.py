"""Lines of memories, caches, copies, starts and disks say which errors they have, and how well their numbers are known."""

from __future__ import annotations

import pytest

from hwsim import api
from hwsim.demand import Cost
from hwsim.devices import Accesses, Cpu, Gpu, Work
from hwsim.devices.line_errors import device_without_number
from hwsim.devices.ssd import Ssd
from hwsim.devices.storage import StorageAccesses
from hwsim.machine import TransferOptions
from hwsim.origins import GIVEN, IDEAL, Origin, UncertaintySource, case_of
from published.parts import part

GB = 1e9


def doubts_of(cost: Cost) -> dict[str, UncertaintySource]:
    return {doubt.regime: doubt for term in cost.why for doubt in term.doubts}


@pytest.mark.parametrize(
    ("cost", "regime", "case"),
    [
        (lambda: part(Cpu, "xeon-6148").compute("cpu0", Work(reads=GB)), "stream/cpu", "known"),
        (lambda: part(Cpu, "celeron-n2830").compute("cpu0", Work(reads=GB, cores=1)), "stream/core", "device"),
        (lambda: part(Cpu, "atom-e3950").access("cpu0", Accesses(count=1e6, pattern="dependent")), "latency/cpu", "known"),
        (lambda: part(Cpu, "epyc-7r13").increment("cpu0", 1e6, 4, shared=True), "latency/core", "known"),
        (lambda: part(Gpu, "v100-pcie-16gb").compute("gpu0", Work(reads=GB)), "stream/gpu", "known"),
        (lambda: part(Gpu, "v100-pcie-16gb").compute("gpu0", Work(reads=1e6, working_set=1e6)), "cache/gpu", "known"),
        (lambda: part(Gpu, "a100-sxm-80gb").compute("gpu0", Work(reads=GB)), "launch/stream", "known"),
        (lambda: part(Ssd, "ssd-sm256e").serve("disk", "read", StorageAccesses(size=1e6, times=9)), "disk/read", "known"),
        (lambda: part(Ssd, "nvme-990pro").serve("disk", "write", StorageAccesses(size=1e6, times=9e5)), "disk/filled", "device"),
    ],
)
def test_a_line_says_which_errors_it_has(cost: object, regime: str, case: str) -> None:
    found = doubts_of(cost())  # type: ignore[operator]
    assert found[regime].case == case
    assert found[regime].seconds > 0


@pytest.mark.parametrize(
    ("stated", "case"),
    [
        ("", "device"),  # the rate of the library's slot was measured on another host
        (", fetches: {value: 93.9 %, source: measured}", "known"),
    ],
)
def test_copies_say_theirs_by_what_their_link_and_their_setup_are_from(stated: str, case: str) -> None:
    machine = api.load_machine(
        "hwsim: machine/1\nparts: {cpu: {kind: cpu, use: xeon-6148}, gpu0: {kind: gpu, use: v100-pcie-32gb}}\n"
        f"links: [{{between: [cpu, gpu0], kind: pcie, use: pcie3-x16{stated}}}]\n"
    )
    found = doubts_of(machine.transfer("cpu", "gpu0", GB))
    assert {regime: doubt.case for regime, doubt in found.items()} == {
        "copy/small": "known",
        "copy/large": case,
        "copy/both": "known",
    }
    assert found["copy/small"].key == "gpu copy/small"
    assert "copy/loads" in doubts_of(machine.transfer("gpu0", "cpu", 1e4, TransferOptions(by="cpu")))


def test_a_core_nobody_measured_is_as_its_class() -> None:
    machine = api.load_machine(
        "hwsim: machine/1\nparts: {cpu: {kind: cpu, class: arm/cortex-a57, cores: 4, clock: 1.4 GHz, "
        "core: {isa: {neon: {bits: 128}}}, caches: {levels: {L1: {size: 32 KiB}, L2: {size: 2 MiB}}}, "
        "memory: {bandwidth: 25.6 GB/s}}}\n"
    )
    cpu = machine.device("cpu").model
    assert isinstance(cpu, Cpu)
    assert cpu.core_rate() == pytest.approx(2.73 * 1.4 * GB)
    assert cpu.caches is not None
    assert not cpu.caches.write_allocate
    assert doubts_of(cpu.compute("cpu", Work(writes=GB, cores=1)))["stream/core"].case == "device"


def test_a_source_says_how_well_a_number_is_known() -> None:
    sources = (Origin("measured", "no guess"), Origin("recalled", "data sheet"), IDEAL, GIVEN, "a guess, in words")
    assert [case_of(source) for source in sources] == ["known", "device", None, None, None]
    assert (device_without_number("node12.gpu3"), device_without_number("cpu")) == ("node.gpu", "cpu")
