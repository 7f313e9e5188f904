"""Parts and links that slow down, fail and come back while a workload runs."""

from __future__ import annotations

from typing import Any

import pytest

import hwsim
from hwsim.spec import SpecError

FOUR = "d2l-4gpu-pcie"
COPY = {"copy": {"from": "gpu0", "to": "gpu1", "bytes": "16 GB"}}  # one second over 16 GB/s


def seconds(*events: dict[str, Any], do: dict[str, Any] = COPY) -> float:
    workload = {"hwsim": "workload/1", "program": [do], "events": list(events)}
    return hwsim.simulate(FOUR, workload).timeline.makespan


def test_a_link_at_half_speed_takes_twice_as_long_from_then_on() -> None:
    assert seconds({"at": "0 s", "link": "slots", "speed": "50 %"}) == pytest.approx(2.0)
    assert seconds({"at": "500 ms", "link": "slots", "speed": "50 %"}) == pytest.approx(1.5)


def test_what_a_slow_spell_takes_is_made_up_for_afterwards() -> None:
    assert seconds({"at": "200 ms", "link": "slots", "speed": "50 %", "for": "200 ms"}) == pytest.approx(1.1)


def test_a_link_that_is_down_makes_traffic_wait() -> None:
    assert seconds({"at": "500 ms", "link": "slots", "down": "3 s"}) == pytest.approx(4.0)


def test_only_links_at_the_named_devices_are_hit() -> None:
    assert seconds({"at": "0 s", "link": "slots", "of": "gpu3", "down": "9 s"}) == pytest.approx(1.0)
    assert seconds({"at": "0 s", "link": "slots", "of": "gpu1", "down": "9 s"}) == pytest.approx(10.0)


def test_of_two_events_the_worse_counts_while_both_last() -> None:
    slow = {"at": "0 s", "link": "slots", "speed": "50 %"}
    assert seconds(slow, {"at": "1 s", "link": "slots", "down": "1 s"}) == pytest.approx(3.0)


def test_a_part_at_half_speed_computes_half_as_fast() -> None:
    work = {"compute": {"device": "gpu0", "flop": "100 TFLOP"}}
    assert seconds({"at": "0 s", "part": "gpu0", "speed": "50 %"}, do=work) == pytest.approx(2 * seconds(do=work))
    assert seconds({"at": "0 s", "part": "gpu1", "speed": "50 %"}, do=work) == pytest.approx(seconds(do=work))


def test_an_event_after_the_end_changes_nothing() -> None:
    assert seconds({"at": "1 h", "link": "slots", "down": "1 h"}) == pytest.approx(1.0)


@pytest.mark.parametrize(
    ("event", "said"),
    [
        ({"at": "1 s", "speed": "50 %"}, "either to a `part` or to a `link`"),
        ({"at": "1 s", "part": "gpu0"}, "either a `speed` or is `down`"),
        ({"at": "1 s", "part": "gpu9", "speed": "50 %"}, "gpu9"),
        ({"at": "1 s", "link": "slot", "speed": "50 %"}, "there is no link 'slot'"),
        ({"at": "1 s", "link": "slots", "of": "cpu", "down": "1 s"}, "no link 'slots' ends at cpu"),
    ],
)
def test_mistakes_in_events_are_said(event: dict[str, Any], said: str) -> None:
    with pytest.raises(SpecError, match=said):
        seconds(event)
