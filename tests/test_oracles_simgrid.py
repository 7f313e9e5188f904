"""Against SimGrid 4.1 (network model CM02: pure max-min), whose results are in the reference data."""

from __future__ import annotations

import csv
import gzip
from collections.abc import Iterable, Sequence
from io import StringIO
from pathlib import Path

import numpy as np
import pytest

from hwsim.demand import Capacity, Cost, Demand
from hwsim.engine import simulate
from hwsim.opgraph import Label, OpGraph
from hwsim.results.timeline import FEMTO
from tests.strategies import make_block

LINK = 12.5e9  # B/s, of every link in every file
HOST = 1e9  # FLOP/s
HOP = 1e-6  # s, latency of a link of the star
TOLERANCE = 1e-6

LABELS = (Label("op", "op", ""),)


def text(directory: Path, name: str) -> str:
    path = directory / "oracles" / "simgrid" / name
    if not path.exists():
        pytest.skip(f"no {path.name} in the reference data")
    return gzip.decompress(path.read_bytes()).decode() if path.suffix == ".gz" else path.read_text(encoding="utf-8")


def capacities(names: Iterable[str], rate: float) -> tuple[Capacity, ...]:
    return tuple(Capacity(name, rate, "B") for name in sorted(set(names)))


def transfer(links: Sequence[str], latency: float) -> Demand:
    """One byte; an op's size says how many."""
    return Demand(latency, tuple((link, 1.0) for link in sorted(links)), share=1.0)


@pytest.mark.parametrize("name", ["flows2_star_100", "flows2_star_1000", "flows2_ft_100", "flows2_ft_1000"])
def test_every_flow_ends_when_simgrid_ends_it(name: str, reference_data: Path) -> None:
    flows = list(csv.DictReader(StringIO(text(reference_data, f"{name}.csv"))))
    assert {float(flow["start"]) for flow in flows} == {0.0}
    routes = [flow["links"].split() for flow in flows]
    costs = [Cost(transfer(route, float(flow["latency"]))) for route, flow in zip(routes, flows, strict=True)]
    body = make_block(range(len(flows)), size=[float(flow["bytes"]) for flow in flows])
    links = capacities((link for route in routes for link in route), LINK)
    ends = simulate(OpGraph((body,), LABELS, tuple(costs), links)).end / FEMTO
    assert ends == pytest.approx([float(flow["finish"]) for flow in flows], rel=TOLERANCE)


@pytest.mark.slow
def test_ten_thousand_flows_end_when_simgrid_ends_them(reference_data: Path) -> None:
    rows = [line.split(",") for line in text(reference_data, "flows_10000.csv.gz").splitlines()]
    routes = [(f"{source}>", f">{target}") for source, target, _ in rows]
    body = make_block(range(len(rows)), size=[float(count) for _, _, count in rows])
    links = capacities((link for route in routes for link in route), LINK)
    costs = tuple(Cost(transfer(route, 2 * HOP)) for route in routes)
    makespan = simulate(OpGraph((body,), LABELS, costs, links)).makespan
    assert makespan == pytest.approx(0.156954, abs=6e-7)  # published with six digits


def dag(lines: Sequence[str]) -> OpGraph:
    """Tasks share their host; what crosses hosts takes an up and a down link of a star."""
    rows = [line.split(",") for line in lines]
    tasks = [row for row in rows if row[0] == "t"]
    host = {number: place for _, number, place, _ in tasks}
    place = {number: op for op, (_, number, _, _) in enumerate(tasks)}
    kinds: dict[tuple[str, ...], int] = {}
    cost = [kinds.setdefault((f"host{row[2]}",), len(kinds)) for row in tasks]
    size = [float(row[3]) for row in tasks]
    edges: list[tuple[int, int, int]] = []
    for kind, before, after, count in rows:
        if kind != "d":
            continue
        if int(count) == 0:
            edges.append((place[before], place[after], 0))
            continue
        route = (f"up{host[before]}", f"down{host[after]}")
        edges += [(place[before], len(cost), 0), (len(cost), place[after], 0)]
        cost.append(kinds.setdefault(route, len(kinds)))
        size.append(float(count))
    demands = [
        Demand(2 * HOP if len(kind) > 1 else 0.0, tuple((name, 1.0) for name in sorted(kind)), share=1.0) for kind in kinds
    ]
    names = sorted({name for kind in kinds for name in kind})
    return OpGraph(
        blocks=(make_block(cost, size=size, edges=edges),),
        labels=LABELS,
        costs=tuple(Cost(demand) for demand in demands),
        capacities=tuple(Capacity(name, HOST if name.startswith("host") else LINK) for name in names),
    )


@pytest.mark.parametrize(
    ("name", "makespan"),
    [
        ("dag_1000.csv", 0.231996929),
        ("dag_10000.csv", 1.818147613),
        pytest.param("dag_100000.csv.gz", 17.168187048, marks=pytest.mark.slow),
    ],
)
def test_a_graph_of_tasks_and_transfers_ends_when_simgrid_ends_it(name: str, makespan: float, reference_data: Path) -> None:
    timeline = simulate(dag(text(reference_data, name).splitlines()))
    assert timeline.makespan == pytest.approx(makespan, rel=TOLERANCE)
    assert np.all(timeline.end >= timeline.start)
