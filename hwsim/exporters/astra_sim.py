"""ASTRA-sim: the ranks as Chakra traces, their GPUs as one network dimension inside a node and one between nodes.

Format: github.com/astra-sim/astra-sim, inputs of the analytical back end: `network.yml` with one entry for each dimension
(bandwidth in GB/s, latency in ns), `system.json` with the algorithm of each collective on each dimension.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from hwsim.exporters import chakra
from hwsim.exporters.tools import Exported
from hwsim.formats import natural
from hwsim.importers.recording import Left
from hwsim.machine import Machine, NoRoute
from hwsim.spec import SpecError
from hwsim.views.trace.names import COPIES
from hwsim.views.trace.run import Run

SAMPLE: Final = 1e9  # bytes of a transfer whose bandwidth is asked for
ALIKE: Final = 0.01  # links whose bandwidths are this near are equal
PAIRS: Final = 512  # GPUs up to which each is asked for
_ALGORITHMS: Final = {"Ring": "ring", "FullyConnected": "direct", "Switch": "halvingDoubling"}
_COLLECTIVES: Final = ("all-reduce", "all-gather", "reduce-scatter", "all-to-all")


class Dimension(NamedTuple):
    """GPUs that a network joins: bandwidth in B/s, latency in s; unequal: pairs with another bandwidth."""

    topology: str
    gpus: int
    bandwidth: float
    latency: float
    unequal: int


def files(run: Run) -> Exported:
    """The traces, and three further files."""
    traces = chakra.files(run)
    machine = run.result.built
    gpus = _on_machine(machine, tuple(run.rank_of))
    if len(gpus) != run.world:
        ranks = "1 rank" if run.world == 1 else f"{run.world} ranks"
        why = f"ASTRA-sim has one GPU in each rank, and here {len(gpus)} GPUs are {ranks}"
        raise SpecError.of(None, f"{why}: they wait for one another outside collectives", "export it as Chakra")
    dimensions = tuple(dimensions_of(machine, gpus)) if machine is not None else ()
    if not all(entry.bandwidth > 0 for entry in dimensions):
        raise SpecError.of(None, "no network of the machine joins the GPUs", "give a machine that has one")
    memory = 0.0
    if machine is not None:
        memory = float(getattr(getattr(machine.devices[gpus[0]].model, "memory", None), "bandwidth", 0.0) or 0.0)
    written = {
        **traces.files,
        "network.yml": [_network(dimensions).encode()],
        "system.json": [_system(dimensions, memory).encode()],
        "remote_memory.json": [b'{"memory-type": "NO_MEMORY_EXPANSION"}\n'],
    }
    return Exported(written, (*traces.unsaid, *_placed(run, gpus), *_unsaid(run, dimensions)))


def _placed(run: Run, gpus: tuple[str, ...]) -> Iterator[Left]:
    placed = [gpu for gpu, name in zip(gpus, run.rank_of, strict=True) if gpu != name]
    if placed:
        yield Left("GPUs", len(placed), 0, f"of a recording: they stand on {placed[0]} to {placed[-1]} of the machine")


def _on_machine(machine: Machine | None, gpus: tuple[str, ...]) -> tuple[str, ...]:
    """The GPUs whose network is written: GPUs of a recording stand for the machine's, in order.

    Raises:
        SpecError: there are fewer than two, or the machine has fewer.
    """
    if len(gpus) < 2:
        few = "there is one GPU" if gpus else "no GPU runs anything"
        raise SpecError.of(None, f"{few} in this run, and ASTRA-sim simulates what GPUs exchange", "export it as Chakra")
    if machine is None or all(gpu in machine.devices for gpu in gpus):
        return gpus
    available = tuple(sorted((name for name in machine.devices if machine.devices[name].kind == "gpu"), key=natural))
    if len(available) < len(gpus):
        hint = f"give a machine of {len(gpus)} or more"
        raise SpecError.of(None, f"the recording has {len(gpus)} GPUs, and the machine {len(available)}", hint)
    return available[: len(gpus)]


def dimensions_of(machine: Machine, gpus: Sequence[str]) -> Iterator[Dimension]:
    """The network inside a node, and the one between nodes, as far as there is one."""
    nodes: dict[str, list[str]] = {}
    for gpu in gpus:
        nodes.setdefault(machine.devices[gpu].node, []).append(gpu)
    first, *others = nodes.values()
    if len({len(entry) for entry in nodes.values()}) > 1:  # nodes of different size are one switch
        first, others = list(gpus), []
    if len(first) > 1:
        yield _dimension(machine, first, len(first))
    if others:
        yield _dimension(machine, [first[0], *(entry[0] for entry in others)], 1 + len(others))


def _dimension(machine: Machine, gpus: Sequence[str], count: int) -> Dimension:
    bandwidths, latencies, direct = [], [], 0
    for partner in gpus[1:PAIRS]:
        try:
            demand = machine.transfer(gpus[0], partner, SAMPLE).demand
            direct += len(machine.route(gpus[0], partner)) == 1
        except NoRoute:
            continue
        bandwidths.append(SAMPLE / demand.body(machine.rates()))
        latencies.append(demand.latency)
    best, near = max(bandwidths, default=0.0), min(latencies, default=0.0)
    topology = "Switch" if not direct else "FullyConnected" if direct == len(bandwidths) else "Ring"
    return Dimension(topology, count, best, near, sum(entry < best * (1 - ALIKE) for entry in bandwidths))


def _network(dimensions: Sequence[Dimension]) -> str:
    shown = dimensions or (Dimension("Switch", 1, 0.0, 0.0, 0),)
    lines = (
        ("topology", [entry.topology for entry in shown]),
        ("npus_count", [str(entry.gpus) for entry in shown]),
        ("bandwidth", [f"{entry.bandwidth / 1e9:.9g}" for entry in shown]),  # GB/s
        ("latency", [f"{entry.latency * 1e9:.9g}" for entry in shown]),  # ns
    )
    return "".join(f"{key}: [ {', '.join(values)} ]\n" for key, values in lines)


def _system(dimensions: Sequence[Dimension], memory: float) -> str:
    algorithms = [_ALGORITHMS[entry.topology] for entry in dimensions] or ["ring"]
    document = {
        "scheduling-policy": "LIFO",
        "endpoint-delay": 0,
        "active-chunks-per-dimension": 1,
        "preferred-dataset-splits": 1,
        **{f"{name}-implementation": algorithms for name in _COLLECTIVES},
        "collective-optimization": "baseline",
        "local-mem-bw": round(memory / 1e9, 6),
        "boost-mode": 0,
    }
    return json.dumps(document, indent=2) + "\n"


def _unsaid(run: Run, dimensions: Sequence[Dimension]) -> Iterator[Left]:
    slices, flat = run.slices, run.result.timeline.flat
    unequal = sum(entry.unequal for entry in dimensions)  # integers
    if unequal:
        yield Left("unequal links", unequal, 0, "pairs slower than the fastest, which stands for all")
    copies = [entry for entry in slices.all if slices.tracks[entry.track].on_gpu and _is_copy(run, entry.op)]
    if copies:
        length = sum(entry.end - entry.start for entry in copies)  # integers
        yield Left("copies", len(copies), length, "as long as here, but not at the same time as kernels, and they share no link")
    kernels = [entry for numbers in slices.order for number in numbers for entry in [slices.all[number]]]
    streams = {entry.track for entry in kernels if slices.tracks[entry.track].on_gpu and flat.label[entry.op] >= 0}
    if len(streams) > 2 * max(1, len(run.rank_of)):
        yield Left("streams", len(streams), 0, "ASTRA-sim runs one kernel and one exchange of a GPU at a time")
    threads = [numbers for track, numbers in zip(slices.tracks, slices.order, strict=True) if not track.on_gpu and numbers]
    if threads:
        length = sum(slices.all[number].end - slices.all[number].start for numbers in threads for number in numbers)  # integers
        yield Left("host threads", len(threads), length, "ASTRA-sim runs one op of a host at a time, whatever its threads")
    if slices.members:
        yield Left(
            "collectives", len(slices.members), 0, "timed by ASTRA-sim: its algorithms on its dimensions, not the library's"
        )


def _is_copy(run: Run, op: int) -> bool:
    flat = run.result.timeline.flat
    return flat.graph.labels[flat.label[op]].kind in COPIES
