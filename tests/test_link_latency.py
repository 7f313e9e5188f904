"""Is a link's latency one thing: the same on a route, in a closed form, in a simulation and in its explanation?"""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hwsim import api, links
from hwsim.communication import ALGORITHMS, Task
from hwsim.links import Wait
from hwsim.links.direct import Direct
from hwsim.records import dataclass
from hwsim.views.explain.explanation import explain


@dataclass(frozen=True, slots=True, kw_only=True)
class Satellite(Direct):
    """A test's own kind: the signal goes up and down, whatever the cable, and is sorted on board."""

    def waits(self) -> tuple[Wait, ...]:
        way = ("height", 35_786e3, "m", "geostationary orbit"), ("light", 299_792_458.0, "m/s", "in vacuum")
        return (
            Wait("2 x height / light", way, 2 * 35_786e3 / 299_792_458.0),
            Wait("on board", (("on board", 0.02, "s", "as given"),), 0.02),
        )


def _plain(kind: str) -> dict[str, object]:
    """The first example of a kind, without a cable and its packets."""
    return {key: value for key, value in links.KINDS[kind].examples[0].items() if key not in ("length", "mtu")}


def machine(kind: str, **keys: object) -> dict[str, object]:
    end = {"kind": "cpu", "cores": 1, "memory": {"bandwidth": "100 GB/s"}, "flop": {"fp32": "1 TFLOP/s"}}
    wire = {"kind": kind, "name": "wire", **_plain(kind), **keys}
    return {
        "hwsim": "machine/1",
        "class": "ideal",
        "parts": {"a": end, "b": end, "s": {"kind": "switch"}},
        "links": [{**wire, "between": ["a", "s"]}, {**wire, "name": "second", "between": ["s", "b"]}],
    }


def zero(found: dict[str, object]) -> api.Run:
    send = {"copy": {"from": "a", "to": "b", "bytes": "0 B"}}
    return api.simulate(found, {"hwsim": "workload/1", "program": [send]})


def agrees(found: dict[str, object]) -> float:
    """The latency between a and b, once every way to it has given the same."""
    built = api.load_machine(found)
    route = sum(link.latency for link in built.route("a", "b"))
    cost = built.transfer("a", "b", 0.0)
    terms = sum(term.seconds for term in cost.why if term.kind == "latency")
    run = zero(found)
    assert terms == pytest.approx(route, rel=1e-12)
    assert cost.demand.latency == pytest.approx(route, rel=1e-12)
    assert run.makespan_s == pytest.approx(route, abs=1e-15)
    told = {str(share.cause) for share in explain(run, again=False).accounting}
    assert told <= {"latency on link wire", "latency on link second", "latency on a"}
    return route


@pytest.mark.parametrize("kind", list(links.KINDS))
def test_the_latency_of_a_route_is_the_sum_of_its_terms_and_the_time_of_zero_bytes(kind: str) -> None:
    assert agrees(machine(kind, latency="3 us")) - agrees(machine(kind)) == pytest.approx(6e-6)


@settings(max_examples=20, deadline=None)
@given(latency=st.floats(0, 1e-3), length=st.floats(0, 1e7), kind=st.sampled_from(["direct", "ethernet", "wifi"]))
def test_a_cable_adds_its_length(latency: float, length: float, kind: str) -> None:
    found = machine(kind, latency=f"{latency!r} s", length=f"{length!r} m")
    speed = 299_792_458.0 * (1 if kind == "wifi" else 2 / 3)
    assert agrees(found) == pytest.approx(2 * (latency + length / speed), rel=1e-9, abs=1e-15)


def test_a_kind_with_its_own_law_of_latency_is_felt_everywhere(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(links.KINDS, "direct", Satellite)
    found = machine("direct", latency="1 s", length="1 m")  # neither says anything to this kind
    once = 2 * 35_786e3 / 299_792_458.0 + 0.02
    assert agrees(found) == pytest.approx(2 * once)
    [said] = explain(zero(found), again=False).derivations
    assert [line.formula for line in said.lines] == ["2 x height / light", "link a->s", "2 x height / light", "link s->b"]
    numbers = {name: (value, source) for line in said.lines for name, value, source in line.inputs}
    assert numbers["height"] == ("35786 km", "geostationary orbit")
    assert numbers["light"] == ("299.792e6 m/s", "in vacuum")
    flows = Task(api.load_machine(found), "all-reduce", ("a", "b"), 2e6).flows(ALGORITHMS["ring"])
    assert sum(phase.cost.demand.latency for phase in flows.phases) == pytest.approx(2 * 2 * once)  # there and back


def test_light_in_air_is_not_called_light_in_glass() -> None:
    [said] = explain(zero(machine("wifi", length="30 m")), again=False).derivations
    assert {source for line in said.lines for name, _, source in line.inputs if name == "speed"} == {
        "of the signal: light in air"
    }
