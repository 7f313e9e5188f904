"""Programs of services by hand and at random: every step, several services that ask each other, and what happens to them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from hypothesis import strategies as st

from hwsim.demand import Capacity, Cost, Crowd, Demand
from hwsim.devices.arm import HeadPositioning, RandomSeeks, SeekCurve
from hwsim.devices.contention import ParallelChips, QueuedArm, SequentialStreams
from hwsim.families.services.workload.arms import accesses_of
from hwsim.families.services.workload.popularity import hit_rate_curve
from hwsim.families.services.workload.program import (
    ENDLESS,
    NONE,
    ArrivalLoad,
    Ask,
    Branch,
    End,
    Fork,
    Give,
    Join,
    Jump,
    Keep,
    Serve,
    ServedStatement,
    ServiceCache,
    ServiceEvent,
    ServiceLock,
    ServiceProgram,
    ServicesProgram,
    StatementDraw,
    Station,
    Step,
    StepNumber,
    Take,
)
from hwsim.workload.load.arrivals import ArrivalKeys, BurstKeys
from hwsim.workload.load.draws import Constant, Distribution, Exponential, Lognormal, Pareto, Uniform, UniformInteger, Values

MS, US = 10**12, 10**9  # fs
CORES = Capacity.of("cpu", "cores", 4.0)
DISK = Capacity.of("disk", "media")
LINK = Capacity.of("net", "tx", 3.125e9, "B")

WAYS = HeadPositioning(RandomSeeks(SeekCurve(1e-3, 5e-5, 4e-3, 1e-7, 3e4), 9e4), 8e-3)

WORKS: dict[str, tuple[Demand, Capacity]] = {
    "compute": (Demand(amounts=(("cpu.cores", 2e-3),), floor=2e-3), CORES),
    "wide": (Demand(amounts=(("cpu.cores", 6e-3),), floor=2e-3, share=3.0), CORES),
    "seek": (Demand(amounts=(("disk.media", 4e-4),)), DISK),
    "read": (
        Demand(
            amounts=(("disk.media", 1 / 3e5),),
            floor=1e-4,
            crowd=Crowd("disk.media", 1, ParallelChips(1e-4, 3e5, 1.5, 64, 1 / 3e5)),
        ),
        DISK,
    ),
    "arm": (Demand(amounts=(("disk.media", 1.2e-2),), crowd=Crowd("disk.media", 1, QueuedArm(2e-3, 1e-2, 0.2, 32))), DISK),
    "deep": (
        Demand(amounts=(("disk.media", 4e-3),), share=2.0, crowd=Crowd("disk.media", 7, QueuedArm(1e-3, 5e-3, 0.2, 32))),
        DISK,
    ),
    "reach": (
        Demand(amounts=(("disk.media", 1.2e-2),), crowd=Crowd("disk.media", 1, QueuedArm(2e-3, 1e-2, 0.2, 32, WAYS))),
        DISK,
    ),
    "reaches": (
        Demand(amounts=(("disk.media", 2.4e-2),), crowd=Crowd("disk.media", 1, QueuedArm(2e-3, 6e-3, 0.0, 3, WAYS))),
        DISK,
    ),
    "stream": (
        Demand(
            amounts=(("disk.media", 1.6e-2),),
            crowd=Crowd("disk.media", 1, SequentialStreams(4e-3, 1e-3, 1e-3, 1e-2, 0.2, 32, 1, WAYS)),
        ),
        DISK,
    ),
    "send": (Demand(amounts=(("net.tx", 1e5),), share=1e5), LINK),
    "page": (Demand(amounts=(("cpu.cores", 1e-3), ("net.tx", 1.5e6)), share=1.5), CORES),
    "push": (Demand(amounts=(("net.tx", 2e6),), share=2.0), LINK),
    "pack": (Demand(amounts=(("cpu.cores", 3e-3), ("net.tx", 1e6)), floor=2e-3, share=2.0), CORES),
}
RATES = {capacity.name: capacity.rate for capacity in (CORES, DISK, LINK)}


def served(
    name: str, station: int, flow: int = 0, latency: int = 0, service: int = 0, resource: int | None = None
) -> ServedStatement:
    """A cost of `WORKS` at a station; at none (-1) it takes its time whatever else is there."""
    demand, _ = WORKS[name]
    body = round(demand.body(RATES) * 1e15)
    return ServedStatement(
        name, "op", "dev", Cost(demand), latency, body, station, flow, service, station if resource is None else resource
    )


def arms(names: Sequence[str], servers: int) -> Station:
    """Arms that serve works that have ways."""
    demands = [WORKS[name][0] for name in names]
    found = [accesses_of(demand, RATES) for demand in demands]
    return Station("arms", (DISK,), tuple(demands), servers, tuple(replace(way, arms=servers) for way in found if way))


def one_service(
    steps: Sequence[Step],
    stations: Sequence[Station],
    costs: Sequence[ServedStatement],
    draws: Sequence[Distribution],
    *,
    arrivals: ArrivalKeys,
    requests: int,
    seed: int = 0,
    **keys: Any,
) -> ServicesProgram:
    """A program of one service."""
    return ServicesProgram(
        services=(ServiceProgram("web", (*steps, End()), arrivals=arrivals, **keys),),
        served=tuple(costs),
        stations=tuple(stations),
        locks=(),
        draws=tuple(StatementDraw(("web", str(index)), draw) for index, draw in enumerate(draws)),
        loads=(ArrivalLoad((0,), requests),),
        resources=tuple(station.name for station in stations),
        seed=seed,
    )


DISTRIBUTIONS: tuple[Distribution, ...] = (
    Constant(1.0),
    Exponential(1.0),
    Lognormal(1.0, 0.7),
    Uniform(0.2, 1.8),
    Pareto(1.5, 0.4, 50.0),
    Pareto(2.5, 0.6),
    Values((0.1, 0.5, 1.0, 1.0, 4.0)),
    UniformInteger(1, 3),
)
UNIT = Uniform(0.0, 1.0)


@st.composite
def programs(draw: st.DrawFn, requests: int = 150) -> ServicesProgram:
    """Up to three services, the later ones asked by the earlier; each step may wait, hold, branch and fail."""
    count = draw(st.integers(1, 3))
    drawn: list[StatementDraw] = []
    costs: list[ServedStatement] = []
    locks = tuple(ServiceLock(f"lock{index}", draw(st.sampled_from([1, 1, 3]))) for index in range(2))
    stations = (
        Station("shared", (CORES,), tuple(WORKS[name][0] for name in ("compute", "wide"))),
        Station("fifo", (DISK,), (WORKS["seek"][0],), draw(st.integers(1, 3))),
        Station("shared", (DISK,), tuple(WORKS[name][0] for name in ("read", "arm", "deep", "seek"))),
        Station("shared", (LINK,), (WORKS["send"][0],)),
        Station("network", (CORES, LINK), tuple(WORKS[name][0] for name in ("compute", "page", "pack", "push"))),
    )
    at_arms: list[str] = []
    tied = {"compute": (4, 0), "page": (4, 1), "pack": (4, 2), "push": (4, 3)}
    places = tied | {
        "compute": (0, 0),
        "wide": (0, 1),
        "seek": (1, 0),
        "read": (2, 0),
        "arm": (2, 1),
        "deep": (2, 2),
        "send": (3, 0),
        **dict.fromkeys(("reach", "reaches", "stream"), (5, 0)),
    }
    caches: list[ServiceCache] = []

    def a_draw(service: int, distribution: Distribution) -> int:
        drawn.append(StatementDraw((f"s{service}", str(len(drawn))), distribution))
        return len(drawn) - 1

    def a_cost(service: int) -> int:
        name = draw(st.sampled_from(sorted(WORKS)))
        where = tied if name in tied and draw(st.booleans()) else places
        station, flow = where[name] if draw(st.integers(0, 4)) else (NONE, 0)
        if station == 5:
            flow = len(at_arms)
            at_arms.append(name)
        costs.append(
            served(name, station, flow, draw(st.sampled_from([0, 0, 50 * US])), service, min(2, max(0, station - station // 2)))
        )
        return len(costs) - 1

    def a_number(service: int, slots: int) -> StepNumber:
        lines = draw(st.sampled_from([(), ((1.0, 0.5, 0.5), (9e9, 0.0, 1.0)), ((9e9, -0.2, 1.0),)]))
        match draw(st.sampled_from(["fixed", "drawn", "kept"] if slots else ["fixed", "drawn"])):
            case "fixed":
                return StepNumber(draw(st.sampled_from([1.0, 0.5, 0.0])))
            case "drawn":
                return StepNumber(draw=a_draw(service, draw(st.sampled_from(DISTRIBUTIONS))), lines=lines)
            case _:
                return StepNumber(slot=0, lines=lines)

    def body(service: int, base: int, size: int, depth: int, held: tuple[int, ...]) -> list[Step]:
        """Steps whose first is the `base`-th."""
        steps: list[Step] = []
        keeps = False
        for _ in range(size):
            at = base + len(steps)
            kind = draw(
                st.sampled_from(
                    ["serve", "serve", "keep", "branch", "fork", "ask", "lock"] if depth else ["serve", "serve", "ask"]
                )
            )
            if kind == "keep":
                steps.append(Keep(a_draw(service, draw(st.sampled_from(DISTRIBUTIONS))), 0))
                keeps = True
            elif kind == "branch":
                inner = body(service, at + 1, 1, depth - 1, held)
                cache = NONE
                if draw(st.booleans()):
                    caches.append(
                        ServiceCache(
                            service, None, draw(st.sampled_from([None, hit_rate_curve(3, 9, 1.0), hit_rate_curve(9, 9, 0.0)]))
                        )
                    )
                    cache = len(caches) - 1
                choices = () if cache >= 0 else (draw(st.integers(-1, 1)),)
                limit = draw(st.sampled_from([0.3, 0.9, 1.0]))
                steps += [Branch(a_draw(service, UNIT), (limit,), (at + 1 + len(inner),), choices, cache), *inner]
            elif kind == "fork":
                parts: list[list[Step]] = []
                begin = at + 1
                for _ in range(draw(st.integers(1, 3))):
                    parts.append([*body(service, begin, 1, depth - 1, ()), Join()])
                    begin += len(parts[-1])
                begins = [at + 1 + sum(map(len, parts[:number])) for number in range(len(parts))]
                steps += [Fork(tuple(begins), begin), *(step for part in parts for step in part)]
            elif kind == "ask" and service + 1 < count:
                other = draw(st.integers(service + 1, count - 1))
                timeout, retries = draw(st.sampled_from([(NONE, 0), (5 * MS, 0), (3 * MS, 2), (20 * MS, 1)]))
                jitter = draw(st.sampled_from([0.0, 0.5]))
                steps.append(
                    Ask(
                        other,
                        draw(st.integers(0, 2**64 - 1)),
                        timeout,
                        retries,
                        draw(st.sampled_from([0, MS])),
                        2.0,
                        jitter,
                        a_draw(service, UNIT) if jitter else NONE,
                        draw(st.booleans()),
                    )
                )
            elif kind == "lock" and len(held) < 2:
                lock = len(held)
                inner = body(service, at + 1, 1, depth - 1, (*held, lock))
                steps += [Take(lock, at + 2 + len(inner)), *inner, Give(lock)]
            else:
                cost = a_cost(service)
                steps.append(Serve(cost, a_number(service, int(keeps))))
        return steps

    services = []
    for service in range(count):
        steps = body(service, 0, draw(st.integers(1, 4)), 2, ())
        if draw(st.integers(0, 5)) == 0:
            steps = [Jump(1), *_moved(steps)]
        arrivals = None
        if service == 0 or draw(st.integers(0, 2)) == 0:
            arrivals = draw(
                st.sampled_from(
                    [
                        ArrivalKeys(poisson=400.0),
                        ArrivalKeys(every=1e-3),
                        ArrivalKeys(clients=5, think=2e-3),
                        ArrivalKeys(clients=30),
                        ArrivalKeys(bursts=BurstKeys(poisson=50.0, size=6)),
                        ArrivalKeys(poisson=2000.0),
                    ]
                )
            )
        services.append(
            ServiceProgram(
                f"s{service}",
                (*steps, End()),
                draw(st.sampled_from([1, 4, ENDLESS])),
                draw(st.sampled_from([0, 3, ENDLESS, ENDLESS])),
                draw(st.booleans()),
                arrivals,
                1,
                ("a", "b"),
                draw(st.sampled_from([0, 3 * MS])),
                draw(st.sampled_from([NONE, 5 * MS])),
            )
        )
    entries = tuple(number for number, program in enumerate(services) if program.arrivals is not None)
    split = len(entries) > 1 and draw(st.booleans())
    loads = (
        tuple(ArrivalLoad((entry,), requests) for entry in entries)
        if split
        else (ArrivalLoad(entries, requests, draw(st.sampled_from([NONE, 80 * MS]))),)
    )
    events = draw(
        st.lists(
            st.sampled_from(
                [
                    ServiceEvent(10 * MS, 30 * MS, 0),
                    ServiceEvent(20 * MS, 60 * MS, 0, 0.0),
                    ServiceEvent(5 * MS, 25 * MS, count - 1),
                    *(ServiceEvent(15 * MS, 15 * MS, mem.service, emptied=pos) for pos, mem in enumerate(caches) if mem.filling),
                    *(ServiceEvent(0, 0, mem.service, emptied=pos) for pos, mem in enumerate(caches) if mem.filling),
                ]
            ),
            max_size=3,
        )
    )
    return ServicesProgram(
        tuple(services),
        tuple(costs),
        (*stations, arms(at_arms, draw(st.integers(1, 3)))) if at_arms else stations,
        locks,
        tuple(drawn),
        loads,
        tuple(caches),
        ("cpu.cores", "disk.media", "net.tx"),
        tuple(events),
        draw(st.integers(0, 5)),
    )


def _moved(steps: Sequence[Step]) -> list[Step]:
    """Steps one place further on."""
    moved: list[Step] = []
    for step in steps:
        match step:
            case Branch():
                moved.append(Branch(step.draw, step.limits, tuple(to + 1 for to in step.to), step.choices, step.cache))
            case Fork():
                moved.append(Fork(tuple(begin + 1 for begin in step.branches), step.to + 1))
            case Take():
                moved.append(Take(step.lock, step.end + 1))
            case _:
                moved.append(step)
    return moved
