"""Links: the numbers of the standards' own documents; a latency is one thing on a route, in a closed form, run and told."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hwsim import api, links
from hwsim.communication import ALGORITHMS, Task
from hwsim.links import Framing, LatencyPart, LinkKind, Protocol
from hwsim.links.direct import DirectLink
from hwsim.links.ethernet import Ethernet, Wifi
from hwsim.links.fabrics import Infiniband, Omnipath, Slingshot
from hwsim.links.nvlink import Nvlink
from hwsim.links.pcie import Pcie
from hwsim.links.sockets import Qpi, Upi
from hwsim.links.xgmi import Xgmi
from hwsim.records import dataclass
from hwsim.views.explain.explanation import explain

WIDTHS = (1, 2, 4, 8, 12, 16, 32)
GENS = (1, 2, 3, 4, 5, 6)


@pytest.mark.parametrize(
    ("link", "gigabytes"),
    [
        (Pcie(gen=1, lanes=16), 4.0),  # PCI-SIG: 250 MB/s a lane
        (Pcie(gen=2, lanes=16), 8.0),
        (Pcie(gen=3, lanes=16), 15.754),  # 985 MB/s a lane
        (Pcie(gen=4, lanes=4), 7.877),
        (Pcie(gen=5, lanes=16), 63.015),
        (Pcie(gen=6, lanes=16), 118.0),
        (Nvlink(gen=1, links=4), 80.0),  # P100: 160 GB/s both ways
        (Nvlink(gen=2, links=6), 150.0),  # V100: 300 GB/s both ways
        (Nvlink(gen=3, links=12), 300.0),  # A100: 600 GB/s
        (Nvlink(gen=4, links=18), 450.0),  # H100: 900 GB/s
        (Nvlink(gen=5, links=18), 900.0),  # B200: 1.8 TB/s
        (Qpi(links=1), 19.2),
        (Upi(links=1), 20.8),
        (Ethernet(rate=25e9 / 8), 3.125),
        (Infiniband(rate=400e9 / 8), 50.0),
        (Xgmi(), 64.0),  # MI300X
        (Xgmi(rate=25e9), 50.0),  # MI250
        (Upi(rate=16e9, links=4), 128.0),  # Sapphire Rapids
        (Omnipath(rate=100e9 / 8), 12.5),
        (Slingshot(rate=200e9 / 8), 25.0),
    ],
)
def test_the_numbers_of_the_standards(link: LinkKind, gigabytes: float) -> None:
    assert link.peak() / 1e9 == pytest.approx(gigabytes, rel=1e-3)


@given(st.sampled_from(GENS), st.sampled_from(WIDTHS))
def test_pcie_grows_with_generation_and_lanes(gen: int, lanes: int) -> None:
    here = Pcie(gen=gen, lanes=lanes).peak()  # type: ignore[arg-type]
    assert here > 0
    if gen < 6:
        assert Pcie(gen=gen + 1, lanes=lanes).peak() > here  # type: ignore[arg-type]
    assert Pcie(gen=gen, lanes=32).peak() == pytest.approx(here * 32 / lanes)  # type: ignore[arg-type]


@given(st.floats(1, 1e15))
def test_a_bandwidth_as_given_is_taken_as_given(bandwidth: float) -> None:
    assert Pcie(bandwidth=bandwidth).peak() == bandwidth
    assert DirectLink(bandwidth=bandwidth).peak() == bandwidth
    assert Nvlink(bandwidth=bandwidth, links=2).peak() == 2 * bandwidth


@pytest.mark.parametrize(
    ("link", "keys"),
    [
        (Pcie(), ["kind"]),
        (Pcie(gen=3), ["kind"]),
        (Pcie(lanes=16), ["kind"]),
        (Pcie(gen=3, lanes=16, bandwidth=1e9), ["gen"]),
        (Pcie(lanes=16, bandwidth=1e9), []),  # the lanes count against the devices' budgets
        (Nvlink(), ["kind"]),
        (Nvlink(gen=2, bandwidth=1e9), ["gen"]),
        (Ethernet(rate=1e9), []),
        (Pcie(bandwidth=1e9, efficiency=0.9), ["efficiency"]),
        (Pcie(bandwidth=1e9, payload=256), ["payload"]),
        (Nvlink(bandwidth=1e9, efficiency=0.9), ["efficiency"]),
        (Xgmi(bandwidth=1e9, efficiency=0.9), ["efficiency"]),
        (DirectLink(bandwidth=1e9, duplex="half", two_way=1.5), ["two_way"]),
        (Wifi(rate=1e9, duplex="full"), ["duplex"]),
    ],
)
def test_too_little_and_too_much_are_named(link: LinkKind, keys: list[str]) -> None:
    assert [key for key, _, _ in link.problems()] == keys


sizes = st.floats(0, 1e12)
PROTOCOLS: tuple[Protocol | None, ...] = (None, "tcp", "udp", "rdma")
framings = st.one_of(
    st.builds(
        lambda mtu, protocol: Ethernet(rate=1e9, mtu=mtu).framing(protocol), st.floats(576, 9000), st.sampled_from(PROTOCOLS)
    ),
    st.builds(lambda mtu: Infiniband(rate=1e9, mtu=mtu).framing(), st.floats(256, 4096)),
    st.builds(lambda mtu: Omnipath(rate=1e9, mtu=mtu).framing(), st.floats(2048, 10240)),
    st.builds(lambda mtu: Slingshot(rate=1e9, mtu=mtu).framing(), st.floats(512, 9000)),
    st.builds(lambda mtu: Wifi(rate=1e9, mtu=mtu).framing("tcp"), st.floats(576, 2304)),
)


@given(framings, sizes, sizes)
def test_packets_take_more_than_the_message_and_no_less_for_more(framing: Framing | None, size: float, more: float) -> None:
    assert framing.wire(0) == 0
    assert framing.wire(size) >= size
    assert framing.wire(size + more) >= framing.wire(size)
    assert framing.wire(1e15) == pytest.approx(1e15 / framing.share(), rel=1e-6)
    assert 0 < framing.share() < 1


@pytest.mark.parametrize(
    ("link", "protocol", "share"),
    [
        (Ethernet(rate=1e9, mtu=1500), "tcp", 1448 / 1538),  # 117.7 MB/s of 1 GbE
        (Ethernet(rate=1e9, mtu=1500), "udp", 1472 / 1538),
        (Ethernet(rate=1e9, mtu=9000), "tcp", 8948 / 9038),
        (Ethernet(rate=1e9, mtu=9000), "rdma", 4096 / (4096 + 44 + 38)),
        (Ethernet(rate=1e9), "tcp", 1448 / 1538),  # who names a protocol asks for its packets
        (Infiniband(rate=1e9, mtu=4096), None, 4096 / 4122),
    ],
)
def test_what_frames_leave(link: Ethernet | Infiniband, protocol: Protocol | None, share: float) -> None:
    framing = link.framing(protocol)
    assert framing.share() == pytest.approx(share)


def test_a_short_message_fills_the_shortest_frame() -> None:
    framing = Ethernet(rate=1e9, mtu=1500).framing()
    assert framing.wire(1) == 84.0
    assert framing.wire(1501) == 1501 + 2 * 38


def test_a_rate_as_given_stays_so_where_nobody_asks_for_packets() -> None:
    assert Ethernet(rate=1e9).framing() is None
    assert Infiniband(rate=1e9).framing("rdma") is None
    assert Pcie(gen=3, lanes=16).carried() == Pcie(gen=3, lanes=16).peak()
    flit, stated = Pcie(gen=6, lanes=16, payload=256), Pcie(gen=6, lanes=16, payload=256, header=16)
    assert flit.carried() == stated.carried() == pytest.approx(118e9 * 256 / 272)  # its framing is part of the encoding
    assert stated.at(5).carried() == Pcie(gen=5, lanes=16, payload=256).carried()


@given(st.sampled_from(GENS), st.sampled_from(WIDTHS), st.floats(64, 4096), st.floats(1, 64), st.floats(0.1, 1))
def test_headers_and_efficiency_only_take(gen: int, lanes: int, payload: float, header: float, efficiency: float) -> None:
    link = Pcie(gen=gen, lanes=lanes, payload=payload, header=header, efficiency=efficiency)  # type: ignore[arg-type]
    assert 0 < link.carried() < link.peak()
    assert link.carried() == pytest.approx(link.peak() * payload / (payload + header) * efficiency)
    wider = Pcie(gen=gen, lanes=32, payload=payload, header=header, efficiency=efficiency)  # type: ignore[arg-type]
    assert wider.carried() >= link.carried()


@given(st.floats(0, 5e7), st.floats(0, 1))
def test_the_signal_takes_its_way(length: float, latency: float) -> None:
    for link in (Ethernet(rate=1e9, length=length, latency=latency), DirectLink(bandwidth=1e9, length=length, latency=latency)):
        assert link.delay() == pytest.approx(latency + length / (2 / 3 * 299792458))
    air = Wifi(rate=1e9, length=length, latency=latency)
    assert air.delay() <= Ethernet(rate=1e9, length=length, latency=latency).delay()


@dataclass(frozen=True, slots=True, kw_only=True)
class Satellite(DirectLink):
    """A test's own kind: the signal goes up and down, whatever the cable, and is sorted on board."""

    def waits(self) -> tuple[LatencyPart, ...]:
        way = ("height", 35_786e3, "m", "geostationary orbit"), ("light", 299_792_458.0, "m/s", "in vacuum")
        return (
            LatencyPart("2 x height / light", way, 2 * 35_786e3 / 299_792_458.0),
            LatencyPart("on board", (("on board", 0.02, "s", "as given"),), 0.02),
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
