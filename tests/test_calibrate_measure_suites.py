"""What `calibrate` times, run for real once and small: no time is asserted, for a busy machine would fail it."""

from __future__ import annotations

from contextlib import ExitStack
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from hwsim_calibrate import blas, environment, harness, pointer_chase
from hwsim_calibrate.calls import call_of
from hwsim_calibrate.case import CannotMeasure, Case
from hwsim_calibrate.kernels import KERNELS, Params, kernel_case
from hwsim_calibrate.store import Row
from hwsim_calibrate.suites import SUITES, Scope, gpu, missing, suite
from hwsim_calibrate.suites.arrays import DTYPES, numbers
from tests.calibrate_cases import StandIn, bench_of

MiB = 1 << 20
PACKAGE = Path(environment.__file__).parent
SMALL: dict[str, Params] = {
    "matmul": {"shape": (4, 3, 5)},
    "window": {"shape": (2, 6, 6, 3)},
    "take": {"n": 16, "index": 8},
    "takerows": {"shape": (8, 4), "index": 5},
    "mixed": {"side": 4},
}


@pytest.fixture
def scope() -> Scope:
    return Scope(memory=MiB)


@cache
def listed(name: str, scope: Scope) -> tuple[Case, ...]:
    """The cases of a suite; those of all kernels take seconds to list."""
    return tuple(suite(name).cases(scope))


def once(cases: list[Case]) -> None:
    """Each case once, its samples as short as they get."""
    quick = [
        Case(
            case.suite, case.op, case.params, case.work, case.make, case.clock, 2, 0.0, case.timer, case.loop, case.max_calls,
            name=case.name,
        )
        for case in cases
    ]  # fmt: skip
    rows, failed = harness.run(quick, budget=60.0, max_rounds=1)
    assert not failed
    assert len(rows) == len(cases)
    assert all(row.quiet > 0 for row in rows)


def test_every_suite_is_a_module_and_every_module_a_suite() -> None:
    found = {path.stem for path in (PACKAGE / "suites").glob("*.py")} - {"__init__", "arrays"}
    assert found == set(SUITES)


@pytest.mark.parametrize("name", [suite_name for suite_name in SUITES if suite_name not in ("gpu", "kernels")])
def test_a_suite_runs_its_smallest_cases(name: str, scope: Scope) -> None:
    reason = missing(name)
    if reason:
        pytest.skip(reason)
    smallest: dict[str, Case] = {}
    for case in listed(name, scope):
        size = case.params.get("bytes", 0)
        before = smallest.get(case.op)
        if before is None or (isinstance(size, int) and size < int(str(before.params.get("bytes", 0)))):
            smallest[case.op] = case
    if name == "memory":
        smallest.pop("chase")  # may need a compiler
    once(list(smallest.values()))


@pytest.mark.parametrize("name", SUITES)
def test_names_of_cases_are_unique_and_within_the_scope(name: str, scope: Scope) -> None:
    found = list(gpu.cases_of(bench_of(StandIn())) if name == "gpu" else listed(name, scope))
    assert len({case.key for case in found}) == len(found) > 0
    assert {case.suite for case in found} == {name}
    if name in ("kernels", "memory"):
        assert all(case.work.reads + case.work.writes <= 4 * scope.memory for case in found)


WHOLE = {"bitwise_and", "bitwise_or", "bitwise_xor", "gcd", "invert", "left_shift", "right_shift"}


@pytest.mark.parametrize("op", KERNELS)
def test_every_kernel_runs(op: str) -> None:
    with np.errstate(all="ignore"), ExitStack() as stack:
        kernel_case(op, SMALL.get(op, {"n": 8, "other": "scalar", "dtype": "int64" if op in WHOLE else "fp64"})).make(stack)()


@pytest.mark.parametrize(
    ("op", "params"),
    [
        ("add", {"n": 8, "into": "self", "other": "array"}),
        ("add", {"shape": (4, 8), "other": "row"}),
        ("subtract", {"shape": (4, 8), "other": "column", "into": "out"}),
        ("multiply", {"n": 8, "other": "mask"}),
        ("multiply", {"n": 8, "other": "same"}),
        ("add", {"shape": (4, 8), "layout": "strided"}),
        ("greater", {"n": 8, "into": "out", "other": "scalar"}),
        ("sum", {"shape": (4, 8), "axis": "0"}),
        ("max", {"shape": (4, 8), "axis": "1", "method": True}),
        ("matmul", {"shape": (4, 3, 5), "transposed": "a", "into": "out"}),
        ("matmul", {"shape": (4, 3, 5), "transposed": "b", "batch": 3}),
        ("copyto", {"shape": (4, 8), "layout": "columns"}),
        ("copyto", {"n": 8, "dtype": "fp32", "source": "fp64"}),
    ],
)
def test_every_form_of_a_kernel_runs(op: str, params: Params) -> None:
    with ExitStack() as stack:
        kernel_case(op, params).make(stack)()


def test_repeated_in_place_numbers_stay_numbers() -> None:
    for op in ("add", "multiply"):
        case = kernel_case(op, {"n": 8, "dtype": "fp32", "into": "self", "other": "array"})
        with ExitStack() as stack:
            call = case.make(stack)
            for _ in range(10_000):
                found = call()
        assert isinstance(found, np.ndarray)
        assert np.isfinite(found).all()
        assert (np.abs(found) > 1e-30).all()


@pytest.mark.parametrize(
    ("op", "params"),
    [
        ("frobnicate", {"n": 8}),
        ("add", {}),
        ("add", {"n": 0}),
        ("add", {"n": 8, "dtype": "fp8"}),
        ("matmul", {"shape": (4, 3)}),
        ("take", {"n": 8}),
    ],
)
def test_a_call_that_there_is_not_is_said(op: str, params: Params) -> None:
    with pytest.raises(CannotMeasure), ExitStack() as stack:
        kernel_case(op, params).make(stack)


@pytest.mark.parametrize("dtype", DTYPES)
def test_arrays_are_the_same_every_time_and_no_two_share_memory(dtype: str) -> None:
    one, two = numbers(dtype, 300, 7), numbers(dtype, 300, 7)
    assert (one == two).all()
    assert not np.shares_memory(one, two)


def test_a_chain_of_reads_goes_through_every_line_in_no_order() -> None:
    table = pointer_chase.random_chain(64 * 1024)
    at, steps = 0, []
    for _ in range(1024):
        steps.append(int(table[at]) - at)
        at = int(table[at])
    assert at == 0
    assert len(set(steps)) > 500  # a prefetcher finds no pattern


def test_a_chain_is_followed_where_there_is_a_compiler() -> None:
    try:
        follow = pointer_chase.compile_chase()
    except CannotMeasure as error:
        pytest.skip(str(error))
    table = pointer_chase.random_chain(4096)
    assert follow(table, 64, 0) == 0
    assert follow(table, 1, follow(table, 63, 0)) == 0


def test_the_suite_of_a_gpu_runs_on_the_stand_in() -> None:
    cases = list(gpu.cases_of(bench_of(StandIn())))
    ops = {case.op for case in cases}
    assert {"launch", "graph", "h2d", "d2h", "d2d", "duplex", "triad", "matmul"} <= ops
    small = [case for case in cases if case.work.reads <= MiB and case.work.flop <= 1e8]
    once([next(case for case in small if case.op == op) for op in sorted({case.op for case in small})])


def test_a_gpu_s_rows_are_by_its_own_clock_unless_the_host_waits() -> None:
    clocks = {case.op: case.clock for case in gpu.cases_of(bench_of(StandIn())) if case.params.get("pinned", True)}
    assert {clocks[op] for op in ("h2d", "d2d", "triad", "matmul", "graph")} == {"device"}
    assert clocks["duplex"] == "wall"


@pytest.mark.gpu
def test_the_suite_of_a_gpu_runs_on_a_gpu(scope: Scope) -> None:
    if gpu.missing():
        pytest.skip(gpu.missing())
    once(list(gpu.cases(scope)))


def test_the_fingerprint_names_no_host_user_or_folder() -> None:
    import json
    import platform

    said = json.dumps(environment.fingerprint())
    for secret in (platform.node(), str(Path.home()), str(Path.cwd())):
        assert len(secret) < 4 or secret not in said
    assert "/" not in json.dumps(environment.variables())


def test_a_path_in_a_variable_is_not_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MKL_CACHE", "/srv/cache")
    monkeypatch.setenv("MALLOC_ARENA_MAX", "2")
    assert environment.variables()["MKL_CACHE"] == "(a path)"
    assert environment.variables()["MALLOC_ARENA_MAX"] == "2"


def test_a_fingerprint_differs_from_another_machine_s_and_not_from_its_own() -> None:
    here = environment.fingerprint()
    assert environment.differences(here, environment.fingerprint()) == ()
    other = here | {"cpu": here["cpu"] | {"model": "Abacus"}}
    assert environment.differences(other, here) == (f"cpu model: Abacus, now {here['cpu']['model']}",)


def test_how_many_threads_blas_has_is_put_back() -> None:
    library = blas.loaded()
    if library is None:
        pytest.skip("numpy uses no OpenBLAS here")
    before = library.threads()
    with blas.using(1):
        assert library.threads() == 1
    assert library.threads() == before
    assert library.core()


# What a fit reads besides single calls of numpy: `among_others`, the host's own time of a call, latencies, new pages.
READ = {
    ("kernels", "mixed"), ("kernels", "pass"), ("memory", "chase"), ("allocation", "mapped"),
}  # fmt: skip


@pytest.mark.parametrize("name", [suite_name for suite_name in SUITES if suite_name != "gpu"])
def test_nothing_is_measured_that_no_fit_reads(name: str, scope: Scope) -> None:
    rows = [Row(name, case.name, case.op, case.params, case.work, (1e-6,), case.clock) for case in listed(name, scope)]
    assert {(row.suite, row.op) for row in rows if call_of(row) is None} <= READ
