"""Compiled code plays services as Python does: the same notes, to the femtosecond, request by request."""

from __future__ import annotations

import tracemalloc
from os import environ
from typing import Literal

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from hwsim.engine import core
from hwsim.families.services.actors import compiled
from hwsim.families.services.actors.compiled import CompiledSimulation
from hwsim.families.services.actors.simulation import ServiceSimulation
from hwsim.families.services.actors.stations import NEVER
from hwsim.families.services.workload.program import (
    ArrivalLoad,
    Ask,
    End,
    Serve,
    ServiceProgram,
    ServicesProgram,
    Station,
    Step,
    StepNumber,
)
from hwsim.workload.load.arrivals import ArrivalKeys
from hwsim.workload.load.draws import Exponential
from tests.service_programs import CORES, DISK, MS, WORKS, one_service, programs, served

pytestmark = pytest.mark.skipif(not core.is_there(), reason=f"nothing to compare Python with: {core.found()}")

CASES = settings(
    max_examples=2000 if environ.get("HWSIM_THOROUGH") else 25,
    deadline=None,
    phases=(Phase.explicit, Phase.reuse, Phase.generate),
)


def noted(play: ServiceSimulation | CompiledSimulation) -> list[object]:
    """All that a run has noted."""
    found: list[object] = [play.now]
    for notes in play.notes:
        notes.flush()
        kept = {name: getattr(notes, name) for name in notes.__slots__}
        kept["above"] = sorted((key, above.count, above.spent, sorted(above.waits.items())) for key, above in notes.above.items())
        found.append(repr(kept))
    for station in play.stations:
        there = station.count(play.now)
        found.append((there, station.area, station.used(max(play.now, 1))))
    return found


@CASES
@given(programs())
def test_every_note_is_the_same(program: ServicesProgram) -> None:
    plain, compiled = ServiceSimulation(program), CompiledSimulation(program)
    plain.until(NEVER)
    compiled.until(NEVER)
    assert noted(compiled) == noted(plain)


@CASES
@given(programs(), st.lists(st.integers(0, 10**14), max_size=4))
def test_a_run_may_be_played_in_pieces(program: ServicesProgram, limits: list[int]) -> None:
    whole, pieces = CompiledSimulation(program, slower=1.3), CompiledSimulation(program, slower=1.3)
    whole.until(NEVER)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(core, "PATIENCE", 0)
        for limit in sorted(limits):
            pieces.until(limit)
            assert pieces.next() >= limit
        pieces.until(NEVER)
    assert noted(pieces) == noted(whole)


@CASES
@given(programs(), st.lists(st.integers(0, 10**14), max_size=2), st.integers(2, 40))
def test_a_clock_that_begins_anew_tells_the_same(program: ServicesProgram, limits: list[int], times: int) -> None:
    plain = ServiceSimulation(program)
    plain.until(NEVER)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(compiled, "REBASE", max(plain.now // times, 10**12))
        anew = CompiledSimulation(program)
        for limit in sorted(limits):
            anew.until(limit)
            assert anew.next() >= limit
        anew.until(NEVER)
    assert noted(anew) == noted(plain)


@pytest.mark.parametrize("arrivals", [ArrivalKeys(clients=3, think=200.0), ArrivalKeys(poisson=0.02)])
@pytest.mark.parametrize("kind", ["shared", "fifo"])
def test_days_are_played_as_python_does(arrivals: ArrivalKeys, kind: Literal["shared", "fifo"]) -> None:
    stations = (Station(kind, (CORES,), (WORKS["compute"][0],)),)
    program = one_service((Serve(0),), stations, (served("compute", 0),), (), arrivals=arrivals, requests=3000)
    plain, compiled = ServiceSimulation(program), CompiledSimulation(program)
    plain.until(NEVER)
    compiled.until(NEVER)
    assert plain.now > 2**66
    assert noted(compiled) == noted(plain)


def test_whom_another_asks_may_ask_a_third() -> None:
    """An answer comes back through all of them, and says what it waited for."""
    steps: tuple[tuple[Step, ...], ...] = (
        (Ask(1, 0, timeout=50 * MS), End()),
        (Ask(2, 0, timeout=40 * MS), Serve(0), End()),
        (Serve(0), End()),
    )
    keys = [ArrivalKeys(every=10e-3), None, None]
    services = [ServiceProgram(f"s{index}", row, arrivals=key) for index, (row, key) in enumerate(zip(steps, keys, strict=True))]
    costs = (served("compute", 0),)
    stations = (Station("shared", (CORES,), (WORKS["compute"][0],)),)
    program = ServicesProgram(tuple(services), costs, stations, (), (), (ArrivalLoad((0,), 100),), resources=("cpu.cores",))
    for play in (ServiceSimulation(program), CompiledSimulation(program)):
        play.until(NEVER)
        for notes in play.notes:
            notes.flush()
            assert (notes.timeouts, notes.wasted, notes.here, notes.answers.count) == (0, 0, 0, 100)
        assert play.notes[0].stay == 100 * 4 * MS


def test_memory_does_not_grow_with_requests() -> None:
    peaks = []
    for requests in (40_000, 120_000):
        program = one_service(
            [Serve(0, StepNumber(draw=0))],
            [Station("fifo", (DISK,), (WORKS["seek"][0],))],
            [served("seek", 0)],
            [Exponential(1.0)],
            arrivals=ArrivalKeys(poisson=1200.0),
            requests=requests,
        )
        tracemalloc.start()
        CompiledSimulation(program).until(NEVER)
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert peaks[1] < 1.5 * peaks[0]
