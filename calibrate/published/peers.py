"""All-reduces of other simulators, simulated here: comparison with their simulated times.

    SimGrid 3.32     N hosts on a star of 12.5 GB/s links with 1 us; 100 MB on a ring in N chunks. CM02: links and latencies only,
                     chunks of whole bytes. LV08 (default): 0.97 of the bandwidth, 1.05 of the bytes for the reverse traffic, and
                     13.01 times the latency; fitted to TCP over wide areas
    LogGOPSim        the same with one latency of 1 us per message, and a gap for every byte but the first
    ASTRA-sim        100 MiB, links of 50 GiB/s and 500 ns, analytical network: adds 10 ns to every step and at the end; a
                     reduction of a received chunk takes 3 times the chunk at 3350 GB/s (in hwsim: during reception); whole ns

Overheads that these tools add are parameters of the machine here, `collectives: {start, step}`, so the comparison covers the
order and timing of sends. ASTRA-sim's congestion-aware switch forwards a message only after receiving all of it: half the
bandwidth of a cut-through switch. Its double binary tree sends the whole buffer between levels in one piece: a binomial tree
here.

Source of the times: runs of these programs (SimGrid 3.32; LogGOPSim; ASTRA-sim 518bd51 with network-analytical 599a047).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, Final

from hwsim import api
from published.parts import declared
from published.score import Miss, Score, scored

MIB: Final = 1 << 20
CM02: Final = declared("peers")["cm02"]
LV08: Final = declared("peers")["lv08"]
LOGGOP: Final = {(name, ranks): seconds for name, ranks, seconds in declared("peers")["loggop"]}
_LINK: Final = 50 * 2**30  # B/s
_MEMORY: Final = 3350e9
_ADDED: Final = 10  # ns
ASTRA: Final[dict[tuple[str, str], dict[int, int]]] = {
    (name, network): times for name, network, times in declared("peers")["astra"]
}
BASELINE: Final = declared("peers")["baseline"]
LOCAL: Final = declared("peers")["local"]
MLP: Final = declared("peers")["mlp"]


def scores(data: Path) -> tuple[Score, ...]:  # noqa: ARG001 (the times are kept here)
    """Return scores with the simulators' overheads as parameters, and of ASTRA-sim against the links only."""
    return (
        _score("SimGrid, ring on a star, CM02", simgrid(), 1e-6),
        _score("SimGrid, ring on a star, LV08", simgrid_default(), 1e-6),
        _score("LogGOPSim, ring and halving-doubling", loggop(), 1e-6),
        _score("ASTRA-sim, flat all-reduces", astra(), 1e-3),
        _score("ASTRA-sim, all-reduces on two levels", levels(), 1e-3),
        _score("ASTRA-sim, eight layers that overlap their all-reduces", layers(), 1e-3),
        _score(
            "ASTRA-sim, against the links alone",
            astra(added=False),
            0.05,
        ),
    )


def _score(name: str, rows: Sequence[Miss], bound: float) -> Score:
    return scored(name, rows, bound, "not fitted", metric="largest relative error")


def star(ranks: int, size: float, **said: Any) -> float:
    """Return the time on the library's star, in seconds; `said`: bandwidth, latency, algorithm and level."""
    where = {"ranks": "machine.let.ranks", "bandwidth": "machine.let.bandwidth", "latency": "machine.let.latency"}
    changes = {where.get(key, key): value for key, value in {**said, "ranks": ranks, "bytes": f"{size!r} B"}.items()}
    return api.simulate("scale/star", "scale/allreduce", set=changes).makespan_s


def simgrid() -> list[Miss]:
    """Return SimGrid's CM02 rows: links and latencies only."""
    return [Miss(f"{n} hosts", star(n, n * (100_000_000 // n)), seconds, "CM02") for n, seconds in CM02.items()]


def simgrid_default() -> list[Miss]:
    """Return SimGrid's LV08 rows, with its factors."""
    rate, latency = f"{12.5 * 0.97 / 1.05!r} GB/s", f"{13.01!r} us"
    found = []
    for n, seconds in LV08.items():
        here = star(n, n * (100_000_000 // n), bandwidth=rate, latency=latency)
        found.append(Miss(f"{n} hosts", here, seconds, "LV08"))
    return found


def loggop() -> list[Miss]:
    """Return LogGOPSim's rows: one latency per message, half on each link."""
    return [
        Miss(f"{name}, {n} ranks", star(n, 100e6, algorithm=name, latency="0.5 us"), seconds, "LogGOPSim")
        for (name, n), seconds in LOGGOP.items()
    ]


def astra(*, added: bool = True) -> list[Miss]:
    """Return ASTRA-sim's rows on one level; `added`: with its overheads."""
    return [
        Miss(f"{name}, {network}, {n} ranks", 1e9 * _flat(name, network, n, added=added), ns, "ASTRA-sim", _why(name, network))
        for (name, network), times in ASTRA.items()
        for n, ns in times.items()
        if added or n <= 64
    ]


def _why(name: str, network: str) -> str:
    if network.endswith("aware"):
        return "simulated at half the bandwidth: the switch stores each message before it forwards it"
    return "ASTRA-sim's double binary tree is not pipelined: simulated as a binomial tree" if name == "binomial-tree" else ""


def _flat(name: str, network: str, n: int, *, added: bool) -> float:
    rate = _LINK / 2 if network.endswith("aware") else _LINK
    links = (
        f"{{topology: ring, of: gpu*, kind: direct, bandwidth: {rate!r} B/s, latency: 500 ns}}"
        if network == "ring"
        else f"{{between: [gpu*, switch], kind: direct, bandwidth: {rate!r} B/s, latency: 500 ns}}"
    )
    size = 100 * MIB
    step = _added(n, size, name) if added else 0.0
    machine = _machine(n, (links,), step=step, start=_ADDED * 1e-9 if added else 0.0)
    return _seconds(machine, [_allreduce(size, name)])


def _steps(name: str, n: int) -> int:
    return 2 * (n - 1) if name == "ring" else 2 * round(math.log2(n))


def _reductions(name: str, n: int, size: float) -> float:
    """Return the time of all reductions in sequence, in ns: two reads and a write of each received chunk."""
    match name:
        case "ring":
            chunks: Iterable[float] = [size / n] * (n - 1)
        case "halving-doubling":  # ASTRA-sim does not charge the first and largest one
            chunks = [size / 2**level for level in range(2, round(math.log2(n)) + 1)]
        case _:  # a parent adds the data of its two children in sequence; one reduction is not charged
            chunks = [size] * (2 * round(math.log2(n)) - 1)
    return sum(3 * math.floor(chunk / _MEMORY * 1e9) for chunk in chunks)


def levels() -> list[Miss]:
    """Return ASTRA-sim's rows on two levels of switches: consecutive all-reduces, and a hierarchical one."""
    size = 100 * MIB
    found = []
    for n, ns in BASELINE.items():
        k = n // 8
        inside, across = _added(8, size), _added(k, size)
        # each level has its own step time, but a machine here has one, so each level is simulated separately
        seconds = _seconds(_two_levels(k, inside), [_allreduce(size, "ring", "near")], groups=True)
        seconds += _seconds(_two_levels(k, across), [_allreduce(size, "ring", "far")], groups=True)
        found.append(
            Miss(
                f"baseline, {n} ranks",
                1e9 * seconds,
                ns,
                "ASTRA-sim",
                "the whole buffer is reduced within the node, then across nodes",
            )
        )
    for n, ns in LOCAL.items():
        k = n // 8
        machine = _two_levels(k, _added(8, size), hop=_added(k, size / 8))
        seconds = _seconds(machine, [_allreduce(size, "hierarchical")])
        found.append(Miss(f"localBWAware, {n} ranks", 1e9 * seconds, ns, "ASTRA-sim"))
    return found


def _added(n: int, size: float, name: str = "ring") -> float:
    """Return ASTRA-sim's overhead per step, in s: 10 ns, and its reductions averaged over all steps."""
    return (_ADDED + _reductions(name, n, size) / _steps(name, n)) * 1e-9


def layers() -> list[Miss]:
    """Return ASTRA-sim's all-reduces of eight layers, executed in sequence during the backward pass."""
    size = 64 * MIB
    found = []
    for n, ns in MLP.items():
        links = f"{{topology: ring, of: gpu*, kind: direct, bandwidth: {float(_LINK)!r} B/s, latency: 500 ns}}"
        machine = _machine(n, (links,), step=_added(n, size), start=_ADDED * 1e-9)
        forward = {"busy": {"name": "forward", "device": "$self", "time": "4 ms"}}
        backward = [
            statement
            for layer in reversed(range(8))
            for statement in (
                {"busy": {"name": f"backward {layer}", "device": "$self", "time": "1 ms", "writes": f"g{layer}"}},
                {"allreduce": {"among": "gpu*", "bytes": f"{size} B", "algorithm": "ring", "reads": f"g{layer}"}},
            )
        ]
        found.append(Miss(f"8 layers, {n} ranks", 1e9 * _seconds(machine, [forward, *backward], each=True), ns, "ASTRA-sim"))
    return found


def _allreduce(size: float, algorithm: str, among: str = "gpu*") -> dict[str, Any]:
    return {"allreduce": {"among": among, "bytes": f"{size!r} B", "algorithm": algorithm}}


def _seconds(machine: str, program: list[dict[str, Any]], *, each: bool = False, groups: bool = False) -> float:
    body: Any = {"each": "gpu*", "do": program} if each else program
    workload: dict[str, Any] = {"hwsim": "workload/1", "program": body}
    if groups:
        workload["groups"] = {"near": {"of": "gpu*", "size": 8}, "far": {"of": "gpu*", "stride": 8}}
    return api.simulate(machine, workload).makespan_s


_GPU: Final = "kind: gpu, flop: {fp32: 1 TFLOP/s}, memory: {bandwidth: 1000 TB/s}"


def _machine(n: int, links: Sequence[str], *, step: float, start: float) -> str:
    entries = "\n".join(f"  - {link}" for link in links)
    return f"""
hwsim: machine/1
class: ideal
collectives: {{start: {start!r} s, step: {step!r} s}}
parts:
  gpu: {{{_GPU}, count: {n}}}
  switch: {{kind: switch}}
links:
{entries}
"""


def _two_levels(k: int, step: float, *, hop: float | None = None) -> str:
    return f"""
hwsim: machine/1
class: ideal
collectives: {{start: 10 ns, step: {step!r} s, hop: {step if hop is None else hop!r} s}}
parts:
  node:
    kind: machine
    count: {k}
    parts:
      gpu: {{{_GPU}, count: 8}}
      near: {{kind: switch}}
    links: [{{between: [gpu*, near], kind: direct, bandwidth: {400 * 2**30} B/s, latency: 500 ns}}]
  far: {{kind: switch}}
links: [{{between: [node*.gpu*, far], kind: direct, bandwidth: {50 * 2**30} B/s, latency: 2 us}}]
"""
