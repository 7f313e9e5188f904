"""Requests of services and of a served model: CPU time over that of plain SimPy models of the same, in the same process.

The models know their capacities as numbers and note nothing but the time of each request; hwsim adds percentiles, waits by
resource, and the use of every capacity.
"""

from __future__ import annotations

import random
import statistics
from collections import deque
from collections.abc import Callable, Generator, Iterator
from time import process_time
from typing import Any, Final

import simpy

from benchmarks.queues import core, planned, served
from benchmarks.queues import machine as of_queues
from hwsim.api import load_machine
from hwsim.engine import core as library
from hwsim.engine.fast import Choice
from hwsim.families.services.actors.actor import simulate_services
from hwsim.families.serving.actors.service import ModelService
from hwsim.families.serving.service_run import PlannedModels
from hwsim.prepare import prepare

ROUNDS: Final = 3
REQUESTS: Final = 20_000
RATE: Final = 300.0  # requests a second
MEANS: Final = (8e-3, 2e-3, 1e-3)  # s of four cores, of one and of one
CHAT: Final = 20_000  # requests of a served model: its kernels are priced once for each size, by the first thousands
PLACES: Final = 64


def _of_service(choice: Choice, requests: int) -> float:
    """Seconds of CPU of requests that pass three stations."""
    statements = [core(f"{mean * 1e3} ms", device) for mean, device in zip(MEANS, ("four", "one", "two"), strict=True)]
    workload = {"hwsim": "workload/1", "requests": requests, "services": served(statements, RATE)}
    program = planned(prepare(of_queues(fifo=True), workload))
    began = process_time()
    simulate_services(program, choice=choice)
    return process_time() - began


def _of_stations(requests: int) -> float:
    """The same in SimPy: a process for each request, and resources."""
    env, draw, times = simpy.Environment(), random.Random(0), list[float]()
    stations = [simpy.Resource(env, many) for many in (4, 1, 1)]

    def request() -> Generator[simpy.Event, Any, None]:
        began = env.now
        for station, mean in zip(stations, MEANS, strict=True):
            with station.request() as place:
                yield place
                yield env.timeout(draw.expovariate(1 / mean))
        times.append(env.now - began)

    def arrivals() -> Generator[simpy.Event, Any, None]:
        for _ in range(requests):
            yield env.timeout(draw.expovariate(RATE))
            env.process(request())

    env.process(arrivals())
    began = process_time()
    env.run()
    return process_time() - began


def _of_model(requests: int) -> float:
    """Seconds of CPU of requests to a model on one GPU: chunked prompts, a cache in blocks, lowering and statistics included."""
    keys = {
        "model": "llama-3-8b",
        "dtype": "fp8",
        "framework": "vllm",
        "parallel": {"tp": 1, "dp": 1},
        "arrivals": {"poisson": "12 1/s"},
        "requests": requests,
        "batch": PLACES,
        "prompt": {"lognormal": {"median": 300, "sigma": 1}},
        "output": {"lognormal": {"median": 250, "sigma": 0.6}},
    }
    machine = load_machine("dgx-h100")
    began = process_time()
    lowered = prepare(machine, {"hwsim": "workload/1", "infer": keys})
    models = lowered.doors["infer"]
    assert isinstance(models, PlannedModels)
    service = ModelService(models.plans[0], lowered.machine)
    service.graph(lowered.graph)
    service.statistics()
    return process_time() - began


def _of_iterations(requests: int) -> float:
    """The same in SimPy: one process that plays iteration by iteration, with times on a line."""
    env, draw, times = simpy.Environment(), random.Random(0), list[float]()
    waiting: deque[list[float]] = deque()  # prompt, tokens of its answer, when it came
    running: list[list[float]] = []
    came = env.event()

    def arrivals() -> Generator[simpy.Event, Any, None]:
        nonlocal came
        for _ in range(requests):
            yield env.timeout(draw.expovariate(12.0))
            waiting.append([draw.lognormvariate(5.7, 1.0), draw.lognormvariate(5.5, 0.6), env.now])
            if not came.triggered:
                came.succeed()

    def copy() -> Generator[simpy.Event, Any, None]:
        nonlocal came
        while len(times) < requests:
            if not (waiting or running):
                came = env.event()
                yield came
            prompts, left = 0.0, 8192.0
            while waiting and len(running) < PLACES and left > 0:
                prompts += waiting[0][0]
                left -= waiting[0][0]
                running.append(waiting.popleft())
            yield env.timeout(4.5e-3 + 2e-5 * len(running) + 2e-5 * prompts)
            for one in running:
                one[1] -= 1
            times.extend(env.now - one[2] for one in running if one[1] <= 0)
            running[:] = [one for one in running if one[1] > 0]

    env.process(arrivals())
    env.process(copy())
    began = process_time()
    env.run()
    return process_time() - began


def rows() -> Iterator[tuple[str, str, str]]:
    """Time of a request, and its ratio to the plain model's, the median of rounds in which they take turns."""

    def over(
        what: str, own: Callable[[int], float], plain: Callable[[int], float], many: int, bound: str
    ) -> tuple[str, str, str]:
        own(many // 10), plain(many // 10)  # imports, tables, and compiled code is loaded
        pairs = [(own(many), plain(many)) for _ in range(ROUNDS)]
        mine = statistics.median(pair[0] for pair in pairs) / many * 1e6
        return what, f"{mine:.1f} us = {statistics.median(a / b for a, b in pairs):.2f}", bound

    yield over(
        "a request of three ops, Python, over SimPy's", lambda many: _of_service("never", many), _of_stations, REQUESTS, "<= 1"
    )
    if library.is_there():
        yield over("the same, compiled", lambda many: _of_service("always", many), _of_stations, REQUESTS, "<= 0.1")
    yield over("a served request, over SimPy's iterations", _of_model, _of_iterations, CHAT, "<= 5")
