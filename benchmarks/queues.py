"""Queues with exact solutions, as services of the language, and the same in Ciw where it is installed.

A run of 95 % intervals holds the exact mean in 35 to 40 of 40 seeds in 97 of 100 such tests. Source: Erlang; Pollaczek
and Khinchine; Jackson, "Networks of waiting lines", Operations Research 5(4), 1957; Baskett, Chandy, Muntz and Palacios,
JACM 22(2), 1975; Reiser and Lavenberg, JACM 27(2), 1980.  Ciw: Palmer, Knight, Harper and Hawa, "Ciw: An open-source
discrete event simulation library", Journal of Simulation 13(1), 2019; pip install ciw, best into an environment of its
own, as its wheel installs a top-level package `tests`.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import lru_cache
from time import process_time
from typing import Any, Final, NamedTuple

from hwsim.families.services.actors.actor import simulate_services
from hwsim.families.services.results.statistics import ServiceNotes
from hwsim.families.services.workload.program import ServicesProgram
from hwsim.prepare import LoweredWorkload, prepare
from hwsim.records import dataclass
from hwsim.results.batches import BatchedSamples, ConfidenceRange
from hwsim.ticks import FEMTO

MS: Final = 1e-3
CV2: Final = 4.0  # squared variation of the wide distributions
SIGMA: Final = math.sqrt(math.log(1 + CV2))
SHARE: Final = 0.5 * (1 + math.sqrt((CV2 - 1) / (CV2 + 1)))  # of the shorter of two exponentials with balanced means
SEEDS: Final = 40


# ---- formulas, in seconds


def erlang(rate: float, mean: float, servers: int) -> float:
    """Mean time in M/M/c.

    >>> round(erlang(500, MS, 1) / MS, 6)
    2.0
    """
    load, blocked = rate * mean, 1.0
    for count in range(1, servers + 1):
        blocked = load * blocked / (count + load * blocked)
    waits = blocked / (1 - load / servers * (1 - blocked))
    return mean + waits / (servers / mean - rate)


def pollaczek(rate: float, mean: float, cv2: float) -> float:
    """Mean time in M/G/1, first come first served."""
    return mean + rate * mean * mean * (1 + cv2) / 2 / (1 - rate * mean)


def repairman(clients: int, servers: int, think: float, mean: float) -> float:
    """Mean time at the servers of clients that think."""
    parts = [1.0]
    for count in range(clients):
        parts.append(parts[-1] * (clients - count) / think * mean / min(count + 1, servers))
    rate = math.fsum(part * min(count, servers) / mean for count, part in enumerate(parts)) / math.fsum(parts)
    return clients / rate - think


def mva(clients: int, think: float, demands: Sequence[float]) -> float:
    """Mean time of a closed network, by exact mean value analysis."""
    queues, times = [0.0] * len(demands), [0.0]
    for count in range(1, clients + 1):
        times = [demand * (1 + queue) for demand, queue in zip(demands, queues, strict=True)]
        rate = count / (think + math.fsum(times))
        queues = [rate * time for time in times]
    return math.fsum(times)


def finite(rate: float, mean: float, servers: int, places: int) -> tuple[float, float]:
    """(part that is sent away, mean time of the others) in M/M/c with so many places in the line.

    >>> [round(each, 4) for each in finite(1000, MS, 1, 1)]  # 3 states alike; in the mean 1 there, 2/3 of the rate
    [0.3333, 0.0015]
    """
    parts = [1.0]
    for count in range(servers + places):
        parts.append(parts[-1] * rate * mean / min(count + 1, servers))
    total = math.fsum(parts)
    there = math.fsum(count * part for count, part in enumerate(parts)) / total
    lost = parts[-1] / total
    return lost, there / (rate * (1 - lost))


# ---- the same as services


@dataclass(frozen=True, slots=True)
class Case:
    """A queue as services of which the first is looked at, its exact mean time (s), and the part of the requests that is lost.

    Args:
        choice: which of its ways is looked at; None: all.
        requests: of a run: 300 / (1 - sqrt(utilization))^2 and more.
    """

    name: str
    services: dict[str, Any]
    exact: float
    lost: float = 0.0
    choice: int | None = None
    fifo: bool = True
    requests: int = 60_000


def core(mean: str, device: str = "one", kind: str = "exponential") -> dict[str, Any]:
    """Work of a distribution with this mean; of "wide", with this median."""
    value: Any = (
        mean if kind == "constant" else {"lognormal": {"median": mean, "sigma": SIGMA}} if kind == "wide" else {kind: mean}
    )
    return {"busy": {"device": device, "time": value}}


def part(cores: int, serves: str) -> dict[str, Any]:
    """A cpu."""
    memory = {"bandwidth": "100 GB/s"}
    return {"kind": "cpu", "cores": cores, "serves": serves, "memory": memory, "flop": {"fp32": "500 GFLOP/s"}}


def machine(*, fifo: bool) -> dict[str, Any]:
    """Cores without a scheduler, first come first served or shared."""
    cores = {"one": 1, "two": 1, "three": 1, "pair": 2, "four": 4}
    parts = {name: part(many, "fifo" if fifo else "shared") for name, many in cores.items()}
    return {"hwsim": "machine/1", "class": "ideal", "parts": parts | {"shared": part(1, "shared")}}


def served(request: Sequence[Any], rate: float = 0.0, **keys: Any) -> dict[str, Any]:
    """A service of these statements."""
    arrivals = {"arrivals": {"poisson": f"{rate} 1/s"}} if rate else {}
    return {"s": {"device": "one", "request": list(request), **arrivals, **keys}}


def hyper(device: str = "one") -> dict[str, Any]:
    """One of two exponentials, 1 ms in the mean, squared variation 4."""
    ways = ((SHARE, 1 / (2 * SHARE)), (1 - SHARE, 1 / (2 * (1 - SHARE))))
    return {
        "choose": {
            f"w{index}": {"share": f"{100 * share} %", "do": [core(f"{mean} ms", device)]}
            for index, (share, mean) in enumerate(ways)
        }
    }


def clients(many: int, think: str) -> dict[str, Any]:
    """Clients that think."""
    return {"arrivals": {"clients": many, "think": {"exponential": think}}}


def cases() -> Iterator[Case]:
    """All queues."""
    median = f"{math.exp(-(SIGMA**2) / 2)} ms"
    yield Case("M/M/4", served([core("1 ms", "four")], 3200), erlang(3200, MS, 4))
    yield Case("M/M/4, shared", served([core("1 ms", "four")], 3200), erlang(3200, MS, 4), fifo=False)
    yield Case("M/D/1", served([core("1 ms", kind="constant")], 700), pollaczek(700, MS, 0))
    yield Case("M/H2/1", served([hyper()], 700), pollaczek(700, MS, CV2))
    yield Case("M/H2/1, shared", served([hyper()], 700), MS / 0.3, fifo=False)
    yield Case("lognormal, 4 cores shared", served([core(median, "four", "wide")], 3200), erlang(3200, MS, 4), fifo=False)
    yield Case("machine repairman", served([core("1 ms", "pair")], **clients(20, "8 ms")), repairman(20, 2, 8 * MS, MS))
    twice = f"{2 * math.exp(-(SIGMA**2) / 2)} ms"
    thrice = [core(twice, "shared", "wide"), core("1.5 ms", "two")]
    yield Case(
        "closed, three kinds",
        served([*thrice, {"busy": {"device": "three", "time": "1 ms"}}], **clients(16, "20 ms")),
        mva(16, 20 * MS, [2 * MS, 1.5 * MS, MS]),
    )
    again = {
        "back": {"share": "60 %", "do": [core("3 ms", "two"), {"ask": "inner"}]},
        "on": {"share": "40 %", "do": [core("1 ms", "three")]},
    }
    inner = {"inner": {"device": "one", "request": [core("2 ms"), {"choose": again}]}}
    visits = ((2.5, 2 * MS), (1.5, 3 * MS), (1.0, MS))
    yield Case(
        "Jackson, with feedback",
        {**served([{"ask": "inner"}], 150), **inner},
        math.fsum(often * erlang(150 * often, mean, 1) for often, mean in visits),
        requests=30_000,
    )
    lost, time = finite(900, MS, 1, 4)
    yield Case("M/M/1 with 4 places", served([core("1 ms", "four")], 900, workers=1, queue_limit=4), time, lost)
    kinds = {"short": {"share": "80 %", "do": [core("0.5 ms")]}, "long": {"share": "20 %", "do": [core("2 ms")]}}
    second = 0.8 * 2 * (0.5 * MS) ** 2 + 0.2 * 2 * (2 * MS) ** 2
    waits = 800 * second / 2 / (1 - 800 * 0.8 * MS)
    yield Case("two classes: short", served([{"choose": kinds}], 800), waits + 0.5 * MS, choice=0)
    yield Case("two classes: long", served([{"choose": kinds}], 800), waits + 2 * MS, choice=1)


CASES: Final = {case.name: case for case in cases()}


def planned(lowered: LoweredWorkload) -> ServicesProgram:
    """The services of a workload on a machine."""
    program = lowered.doors["services"]
    assert isinstance(program, ServicesProgram)
    return program


@lru_cache(maxsize=32)
def program_of(name: str) -> ServicesProgram:
    """A case, ready to be played."""
    case = CASES[name]
    written = {"hwsim": "workload/1", "services": case.services, "requests": case.requests}
    return planned(prepare(machine(fifo=case.fifo), written))


class Found(NamedTuple):
    """A run of a case: mean time, part that was sent away, CPU seconds, and by how much Little's law is off, in fs."""

    mean: ConfidenceRange
    lost: float
    seconds: float
    little: int


def simulated(name: str, seed: int = 0) -> Found:
    """A case, by hwsim."""
    began = process_time()
    own = list(CASES).index(name) * 1000 + seed  # else the same draws would come in all cases
    play = simulate_services(replace(program_of(name), seed=own), choice="always")
    notes: ServiceNotes = play.notes[0]
    notes.flush()
    choice = CASES[name].choice
    of: BatchedSamples = notes.answers if choice is None else notes.by_choice[choice]
    mean = of.estimate(warm_up=0).mean
    little = sum(abs(note.area - note.stay) for note in play.notes)  # integers
    return Found(mean, notes.refused / max(1, notes.entered), process_time() - began, little)


def held(name: str, seeds: int = SEEDS) -> int:
    """Of so many seeds, those whose interval holds the exact mean."""
    found = [simulated(name, seed).mean for seed in range(seeds)]
    return sum(mean.low <= CASES[name].exact <= mean.high for mean in found)


# ---- and in Ciw


def _networks(ciw: Any) -> dict[str, dict[str, Any]]:
    """Keys of `ciw.create_network` of the five cases that are compared."""

    def time(mean: float) -> Any:
        return ciw.dists.Exponential(rate=1 / mean)

    def one(rate: float, service: Any, servers: int = 1) -> dict[str, Any]:
        return {"arrival_distributions": [time(1 / rate)], "service_distributions": [service], "number_of_servers": [servers]}

    classes = {"short": (640.0, 0.5 * MS), "long": (160.0, 2 * MS)}
    return {
        "M/M/4": one(3200, time(MS), 4),
        "M/D/1": one(700, ciw.dists.Deterministic(value=MS)),
        "Jackson, with feedback": {
            "arrival_distributions": [time(1 / 150), None, None],
            "service_distributions": [time(2 * MS), time(3 * MS), time(MS)],
            "number_of_servers": [1, 1, 1],
            "routing": [[0.0, 0.6, 0.4], [1.0, 0.0, 0.0], [0.0, 0.0, 0.0]],
        },
        "M/M/1 with 4 places": {**one(900, time(MS)), "queue_capacities": [4]},
        "two classes: long": {
            "arrival_distributions": {name: [time(1 / rate)] for name, (rate, _) in classes.items()},
            "service_distributions": {name: [time(mean)] for name, (_, mean) in classes.items()},
            "number_of_servers": [1],
        },
    }


COMPARED: Final = ("M/M/4", "M/D/1", "Jackson, with feedback", "M/M/1 with 4 places", "two classes: long")


def by_ciw(name: str, seed: int = 0, requests: int | None = None) -> Found:
    """A case, by Ciw, with the same intervals."""
    import ciw

    rate = {"M/M/4": 3200, "M/D/1": 700, "Jackson, with feedback": 150, "M/M/1 with 4 places": 900}.get(name, 800)
    ciw.seed(seed)
    simulation = ciw.Simulation(ciw.create_network(**_networks(ciw)[name]))
    began = process_time()
    simulation.simulate_until_max_time((requests or CASES[name].requests) / rate)
    seconds = process_time() - began
    spans: dict[int, tuple[float, float]] = {}
    lost = 0
    for record in simulation.get_all_records():
        if record.record_type == "rejection":
            lost += 1
        elif record.record_type == "service" and (name != "two classes: long" or record.customer_class == "long"):
            first, last = spans.get(record.id_number, (math.inf, 0.0))
            spans[record.id_number] = min(first, record.arrival_date), max(last, record.exit_date)
    batched = BatchedSamples()
    for first, last in sorted(spans.values(), key=lambda span: span[1]):
        batched.add(round((last - first) * FEMTO) / FEMTO)
    return Found(batched.estimate(warm_up=0).mean, lost / (lost + len(spans)), seconds, 0)
