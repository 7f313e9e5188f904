"""Services beside exact formulas of queueing theory: of 20 runs, 95 % intervals hold the exact mean in 17 at least.

A correct interval of 95 % holds it in 17 to 20 of 20 in 98 of 100 such tests; one run would say little. The page has 40.
"""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from benchmarks.queues import CASES, COMPARED, MS, by_ciw, erlang, finite, held, mva, pollaczek, repairman, simulated
from hwsim.engine.core import is_there
from hwsim.families.services.workload.program import StepNumber
from tests.service_cases import FIFO, run

PAGE = Path(__file__).parents[1] / "docs" / "validation" / "services.md"


def test_formulas_agree_where_they_meet() -> None:
    assert erlang(800, MS, 1) == pytest.approx(pollaczek(800, MS, 1.0)) == pytest.approx(5 * MS)
    assert finite(800, MS, 1, 10_000)[1] == pytest.approx(5 * MS)
    assert repairman(7, 1, 20 * MS, MS) == pytest.approx(mva(7, 20 * MS, [MS]))
    assert mva(1, 0.0, [MS, 2 * MS]) == pytest.approx(3 * MS)
    lost, time = finite(1500, MS, 3, 0)  # Erlang B: 1.5 calls on 3 lines
    assert lost == pytest.approx(1.5**3 / 6 / (1 + 1.5 + 1.5**2 / 2 + 1.5**3 / 6))
    assert time == pytest.approx(MS)


@pytest.mark.skipif(not is_there(), reason="without the compiled core it takes minutes")
@pytest.mark.slow
@pytest.mark.parametrize("name", CASES)
def test_the_interval_holds_the_exact_mean(name: str) -> None:
    assert held(name, 20) >= 17, f"of 20 intervals too few hold {CASES[name].exact * 1e3:.4f} ms"


def test_a_queue_with_few_places_sends_away_what_it_must() -> None:
    """And the number there is the integral of all stays, to the femtosecond."""
    found = simulated("M/M/1 with 4 places", 1)
    assert found.lost == pytest.approx(CASES["M/M/1 with 4 places"].lost, abs=4 * (0.13 / 60_000) ** 0.5 * 3)
    assert found.little == 0


@pytest.mark.skipif(find_spec("ciw") is None, reason="Ciw is not installed")
@pytest.mark.parametrize("name", COMPARED)
def test_ciw_finds_the_same(name: str) -> None:
    """Half a second of Ciw: within its interval and four times its half width of the exact mean."""
    found = by_ciw(name, 1, 12_000)
    assert found.mean.value == pytest.approx(CASES[name].exact, rel=4 * found.mean.half)
    assert found.lost == pytest.approx(CASES[name].lost, abs=0.02)


def test_the_page_has_every_queue() -> None:
    text = PAGE.read_text(encoding="utf-8")
    for name, case in CASES.items():
        assert f"| {name} | {case.exact * 1e3:.4f} |" in text
    assert text.count("\n") > len(CASES) + len(COMPARED)


@pytest.mark.parametrize("beginning", [{}, {"ramp": "0 s"}, {"ramp": "3 s"}])
def test_in_steady_state_it_does_not_matter_how_clients_begin(beginning: dict[str, str]) -> None:
    """Machine repairman: its mean hangs on the think time's mean alone (Baskett, Chandy, Muntz and Palacios)."""
    keys = {"clients": 20, "think": "30 ms", **beginning}
    work = {"busy": {"device": "one", "time": {"exponential": "1 ms"}}}
    found = run({"s": {"device": "one", "arrivals": keys, "request": [work]}}, FIFO, requests=60_000)["s"].latency
    exact = repairman(20, 1, 0.03, MS)
    assert found.mean.value == pytest.approx(exact, rel=1.5 * found.mean.half)


def test_clients_begin_within_the_time_that_they_think() -> None:
    """The first second of 2,000 clients that think for ten has a tenth of their requests; with a ramp of 4 s a quarter."""
    lasting: dict[str, Any] = {"for": "1 s"}
    for beginning, part in (({}, 0.1), ({"ramp": "4 s"}, 0.25), ({"ramp": "0 s"}, 1.0)):
        keys = {"clients": 2000, "think": "10 s", **beginning}
        service = {"device": "cpu", "arrivals": keys, "request": [{"busy": {"time": "1 us"}}]}
        found = run({"s": service}, None, **lasting)["s"]
        assert found.arrived == pytest.approx(2000 * part, rel=0.1)


def test_a_number_goes_on_as_its_last_measured_line() -> None:
    measured = StepNumber(slot=0, lines=((2.0, 0.0, 10.0), (4.0, 10.0, 5.0)))
    assert [measured.of(drawn) for drawn in (1.0, 2.0, 3.0, 4.0, 6.0)] == [10.0, 20.0, 25.0, 30.0, 40.0]
