"""Keys that would change nothing are refused, or warned of with their place."""

from __future__ import annotations

from typing import Any, Final

import pytest

import hwsim
from hwsim.devices.functions import FUNCTIONS
from hwsim.spec import SpecError
from hwsim_calibrate.kernels import KERNELS
from hwsim_calibrate.recording.numpy_patches import ALIKE, GIVEN, MADE, READ
from tests.keys.examples.cpus import DETAILED, ROOFLINE
from tests.keys.examples.programs import MEASURED
from tests.keys.examples.serving import EACH, MACHINE, infer, pipeline
from tests.keys.examples.training import TRAIN, gpus, train
from tests.keys.examples.writing import CPU, PLAIN_GPU, between, machine, program

PAIR: Final = machine(
    between("cpu", "gpu*", "pcie", gen=3, lanes=16),
    cpu={**ROOFLINE, "cores": 8, "lanes": 64},
    gpu={**PLAIN_GPU, "count": 2, "random": "1e10 1/s"},
)
SOCKETS: Final = machine(cpu=DETAILED)
BUSY: Final = {"busy": {"device": "cpu", "time": "1 ms"}}
FAR: Final = {"device": "cpu", "count": 1e6, "bytes": "64 B", "remote": "50 %"}
SAVED: Final = {"every": 4, "bytes": "50 MB", "to": "disk"}

REFUSED: Final[dict[str, tuple[Any, Any, str]]] = {
    "an unknown function": (PAIR, program({"elementwise": {"device": "cpu", "count": 9, "function": "nonsense"}}),
        "'nonsense' is not a function"),
    "a function misspelt": (MEASURED, program({"reduce": {"device": "cpu", "count": 9, "function": "summ"}}),
        "did you mean 'sum'"),
    "a function of a product": (PAIR, program({"matmul": {"device": "cpu", "m": 9, "n": 9, "k": 9, "function": "exp"}}),
        "unknown key 'function'"),
    "branches alone": (PAIR, program({"compute": {"device": "cpu", "instructions": 1e6, "branches": 1e5}}),
        "no effect without `mispredicted`"),
    "mispredicted alone": (PAIR, program({"compute": {"device": "cpu", "flop": "1 GFLOP", "mispredicted": "5 %"}}),
        "without `branches`"),
    "epochs without samples": (gpus(4), train(**TRAIN, epochs=3), "no effect without `samples`"),
    "samples without epochs": (gpus(4), train(**TRAIN, samples=1e6), "no effect without `epochs`"),
    "tokens and epochs": (gpus(4), train(**TRAIN, epochs=3, samples=1e6, tokens=1e9), "expected one of them"),
    "a collective of nobody": (PAIR, program({"allreduce": {"among": [], "bytes": "1 MB"}}), "at least one device"),
    "a service on no device": (gpus(4), infer(device=[]), "no device is named"),
    "a training on no device": (gpus(4), train(**{**TRAIN, "device": []}), "no device is named"),
}  # fmt: skip
WARNED: Final[dict[str, tuple[Any, Any, str, str]]] = {
    "rows on a gpu": (PAIR, program({"softmax": {"device": "gpu0", "count": 1e6, "rows": 10}}), "not-measured",
        "`rows` of softmax"),
    "rows on a cpu": (PAIR, program({"reduce": {"device": "cpu", "count": 1e6, "rows": 10}}), "not-measured",
        "`rows` of reduce"),
    "a known function": (PAIR, program(*[{"elementwise": {"device": "cpu", "count": 9, "function": "exp", "into": "out"}}] * 3),
                         "not-measured", "`function`, `into` of 3 ops (elementwise)"),
    "a softmax of no function": (MEASURED, program({"softmax": {"device": "cpu", "count": 9, "into": "out"}}), "not-measured",
        "`into`"),
    "kernels on a cpu": (PAIR, program({"softmax": {"device": "cpu", "count": 9, "kernels": 5}}), "no-effect", "`kernels`"),
    "chunks of a phase": (PAIR, program({"allreduce": {"among": "gpu*", "bytes": "1 MB", "chunks": 4}}), "no-effect",
        "`chunks`"),
    "threads of no instructions": (PAIR, program({"compute": {"device": "cpu", "flop": "1 GFLOP", "threads": 2}}),
        "no-effect", "`threads`"),
    "instructions of random": (PAIR, program({"random": {"device": "cpu", "count": 9, "isa": "avx2"}}), "no-effect", "`isa`"),
    "remote on a gpu": (PAIR, program({"access": {**FAR, "device": "gpu0"}}), "no-effect", "`remote`"),
    "remote on one core": (SOCKETS, program({"access": {**FAR, "cores": 1}}), "no-effect", "`remote`"),
    "shards of nothing": (gpus(4), train(**TRAIN, sharding="zero-0", shards=2), "no-effect", "`shards`"),
    "uneven stages that are even": (gpus(4), train(**TRAIN, parallel={"pp": 2, "dp": 2}, uneven=True), "no-effect", "`uneven`"),
    "requests of a plain disk": (MACHINE, pipeline(checkpoint={**SAVED, "request": "4 KiB", "depth": 9}), "no-effect",
        "`request`, `depth`"),
    "a region of a plain disk": (MACHINE, program({"read": {"from": "disk", "bytes": "1 MB", "region": "1 GB"}}), "no-effect",
        "`region`"),
    "compiling nothing": (PAIR, program(BUSY, runtime={"dispatch": "1 us", "compile": "1 ms"}), "no-effect",
        "`compile` of the runtime"),
    "no call to compile": (PAIR, program(BUSY, runtime={"call": "1 us", "per_op": "1 us"}), "no-effect",
        "`call`, `per_op` of the runtime"),
    "a runtime of no program": (MACHINE, {**pipeline(checkpoint=None), "runtime": {"dispatch": "1 us"}}, "no-effect",
        "`runtime` has no effect"),
}  # fmt: skip
SILENT: Final[dict[str, tuple[Any, Any]]] = {
    "chunks of sends": (PAIR, program({"allreduce": {"among": "gpu*", "bytes": "1 MB", "chunks": 4, "steps": "explicit"}})),
    "remote on all cores": (SOCKETS, program({"access": FAR})),
    "parts of each": (MACHINE, EACH),
    "stages that differ": (gpus(4), train(**{**TRAIN, "model": {**TRAIN["model"], "layers": 6}}, parallel={"pp": 4, "dp": 1},
        uneven=True)),
    "a view": (PAIR, program({"elementwise": {"device": "cpu", "count": 0, "inputs": 0, "flop_each": 0, "cores": 1}})),
    "a default": (PAIR, program({"softmax": {"device": "cpu", "count": 9, "kernels": 1, "rows": 1}})),
    "a measured call": (MEASURED, program({"reduce": {"device": "cpu", "count": 1e4, "function": "sum", "rows": 10.0,
        "into": "out"}})),
}  # fmt: skip


@pytest.mark.parametrize("case", REFUSED)
def test_what_means_nothing_anywhere_is_refused(case: str) -> None:
    on, workload, said = REFUSED[case]
    with pytest.raises(SpecError) as failed:
        hwsim.simulate(on, workload)
    assert said in str(failed.value)


@pytest.mark.parametrize("case", WARNED)
def test_what_means_nothing_here_warns(case: str) -> None:
    on, workload, code, said = WARNED[case]
    warnings = [warning for warning in hwsim.simulate(on, workload).warnings if warning.code == code]
    assert len(warnings) == 1
    assert said in warnings[0].text


@pytest.mark.parametrize("case", SILENT)
def test_what_is_heeded_does_not_warn(case: str) -> None:
    codes = {warning.code for warning in hwsim.simulate(*SILENT[case]).warnings}
    assert not codes & {"no-effect", "not-measured"}


def test_functions_that_are_measured_or_recorded_are_known() -> None:
    assert set(KERNELS) | set(MADE) | set(ALIKE) | set(GIVEN) | set(READ) <= FUNCTIONS


def test_a_part_without_measured_calls_takes_plain_traffic() -> None:
    plain, named = (
        hwsim.simulate(machine(cpu=CPU), program({"elementwise": {"device": "cpu", "count": 1e6, **more}})).makespan_s
        for more in ({}, {"function": "exp", "into": "out", "rows": 10})
    )
    assert plain == named


def test_a_parameter_that_nothing_mentions_is_told_and_one_that_another_takes_is_not() -> None:
    workload = """
hwsim: workload/1
let: {mode: sync, n: 2, twice: $n * 1 ms}
program: [{busy: {device: gpu0, time: $twice}}]
"""
    for settings in ({}, {"mode": "async"}):
        found = hwsim.simulate(gpus(4), workload, set=settings).warnings
        assert [(warning.code, warning.text) for warning in found] == [
            ("no-effect", "`let: mode` has no effect: the workload does not use $mode")
        ]
