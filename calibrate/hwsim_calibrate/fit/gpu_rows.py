"""Predictions of the rows of the suite `gpu`, by the models that simulate a machine, and the use of each row.

The fit is the inverse of these predictions, and its error at rows held out is measured with them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from hwsim import api
from hwsim.devices import Gpu, Product, Work
from hwsim.devices.accesses import Accesses
from hwsim.devices.gpu_memory import Stream
from hwsim.devices.roofline import CannotCompute
from hwsim.machine import Handling, Machine
from hwsim_calibrate.fit.heldout import HeldOut, Predicted, score
from hwsim_calibrate.store import Row
from hwsim_calibrate.suites.gpu import FLUSHED

# Op of a row: the keys of the gpu or of its link that are fitted to it, or what it is kept for.
FEEDS: Final[Mapping[str, str]] = {
    "launch": "launch.stream, launch.host; kept: `enqueue` shows when the host is what limits",
    "graph": "launch.graph",
    "copy": "launch.stream, memory.bandwidth, sustained.copy, l2",
    "triad": "launch.stream, sustained.read, sustained.copy, l2; kept: `cold` checks them, the cache overwritten",
    "read": "sustained.read, l2",
    "write": "sustained.write, l2",
    "chase": "l1.latency, l1.chase, l2.latency, l2.far, l2.miss, l2.chase",
    "matmul": "flop, matmul",
    "arithmetic": "vector",
    "h2d": "copies.setup, copies.fetch, copies.fill, copies.pageable, link: fetches",
    "d2h": "copies.setup, copies.pageable, link: bandwidth",
    "d2d": "copies.local, copies.local_setup",
    "duplex": "link: two_way",
    "clock": "clock",
    "synchronize": "kept: part of every time for which the host waits",
    "queue": "kept: kernels in the queue at which the host has to wait; no key holds it",
    "fill": "kept: the time to overwrite the cache, which is part of a `cold` row",
    "overlap": "kept: a copy together with products takes as long as the longer of the two",
    "streams": "kept: kernels that fill the GPU take as long in two streams as in one",
    "add": "kept: checks memory and launches",
    "exp": "kept: checks memory and launches",
    "tanh": "kept: checks memory and launches",
    "sqrt": "kept: checks memory and launches",
    "sum": "kept: checks memory and launches",
    "max": "kept: checks memory and launches",
}
ELEMENTWISE: Final = ("add", "exp", "tanh", "sqrt", "sum", "max")
MOVING: Final = ("copy", "triad", "read", "write")
HOST: Final = {
    "kind": "cpu", "name": "a host that never limits", "source": "guess", "ref": "so that the GPU and its link limit",
    "cores": 1, "flop": {"fp64": "1 TFLOP/s"}, "memory": {"bandwidth": "100 TB/s"},
}  # fmt: skip
_HANDLING: Final = {True: Handling(), False: Handling(pages="pageable", waited=True)}  # by whether it is pinned


def machine_of(part: Mapping[str, Any], link: Mapping[str, Any]) -> Machine:
    """A machine of the GPU and its link, whose host never limits."""
    content = {"hwsim": "machine/1", "class": "ideal", "name": "gpu", "parts": {"cpu": HOST, "gpu": dict(part)}}
    return api.load_machine(content | ({"links": [dict(link)]} if link else {}))


def size_of(row: Row) -> float:
    """Size by which the rows of a group are ordered: FLOP of a product, else bytes of the arrays."""
    if row.op == "matmul":
        return row.work.flop
    size = row.params.get("bytes", row.params.get("n", 0))
    return float(size) if isinstance(size, int | float) else 0.0


def group_of(row: Row) -> str:
    """The group of rows whose error is reported together; "" for rows without a prediction."""
    if row.op == "matmul":
        return f"products {row.params.get('dtype')}"
    if row.op in ELEMENTWISE:
        return "element by element"
    if row.op in MOVING:
        return "memory, cold" if row.params.get("cold") else "memory"
    if row.op in ("h2d", "d2h"):
        return f"host copies, {'pinned' if row.params.get('pinned') else 'pageable'}"
    return {
        "arithmetic": "arithmetic",
        "d2d": "copies inside",
        "chase": "latency",
        "overlap": "overlap",
        "streams": "streams",
        "graph": "launches",
        "launch": "launches",
    }.get(row.op, "")


def product_work(row: Row) -> Work | None:
    """The product of a row as the op `matmul` asks for it."""
    shape, work = row.params.get("shape"), row.work
    if not isinstance(shape, tuple | list):
        return None
    m, k, n = (int(each) for each in shape)
    stored = row.params.get("transposed", "none") == "b"
    return Work(
        flop=work.flop, reads=work.reads, writes=work.writes, dtype=str(row.params.get("dtype")), mix="matmul",
        product=Product(m, n, k, 1, stored),
    )  # fmt: skip


def seconds_of(machine: Machine, row: Row) -> float | None:
    """Predicted seconds of a row; None where the machine says nothing of it."""
    gpu, rates = machine.devices["gpu"].model, machine.rates()
    if not isinstance(gpu, Gpu):
        return None
    work, params, traffic = row.work, row.params, row.work.reads + row.work.writes
    cost = None
    match row.op:
        case "launch" if params.get("measured") in ("device", "wait"):
            cost = gpu.compute("gpu", Work(start="stream" if params["measured"] == "device" else "host"))
        case "graph":
            cost = gpu.compute("gpu", Work(kernels=int(work.calls), start="graph"))
        case op if op in MOVING and not params.get("cold"):
            cost = gpu.stream("gpu", Stream(reads=work.reads, writes=work.writes, working_set=traffic))
        case "triad":  # the cache is overwritten before it
            flushed = gpu.stream("gpu", Stream(writes=float(FLUSHED), working_set=float(FLUSHED)))
            cost = gpu.stream("gpu", Stream(reads=work.reads, writes=work.writes))
            return flushed.demand.alone(rates) + cost.demand.alone(rates)
        case op if op in ELEMENTWISE:
            moved = Work(flop=work.flop, reads=work.reads, writes=work.writes, dtype=str(params["dtype"]), working_set=traffic)
            cost = gpu.compute("gpu", moved)
        case "matmul":
            product = product_work(row)
            cost = None if product is None else gpu.compute("gpu", product)
        case "arithmetic":
            cost = gpu.compute("gpu", Work(flop=work.flop, dtype=str(params["dtype"])))
        case "chase":
            return gpu.access("gpu", Accesses(count=1.0, pattern="dependent", working_set=size_of(row))).demand.floor
        case "h2d" | "d2h" | "d2d":
            ends = {"h2d": ("cpu", "gpu"), "d2h": ("gpu", "cpu"), "d2d": ("gpu", "gpu")}[row.op]
            cost = machine.transfer(*ends, size_of(row), _HANDLING[bool(params.get("pinned", True))])
        case "overlap":
            parts, side = str(params["parts"]).split(), int(str(params["side"]))
            matrix = 4.0 * side**2
            squares = Work(flop=2.0 * side**3, reads=2 * matrix, writes=matrix, mix="matmul", product=Product(side, side, side))
            took = [machine.transfer("cpu", "gpu", size_of(row)).demand.alone(rates)] if "copy" in parts else []
            took += [int(str(params["n"])) * gpu.compute("gpu", squares).demand.alone(rates)] if "matmul" in parts else []
            return max(took)
        case "streams":
            calls = int(work.calls)
            moved = Work(
                flop=work.flop / calls, reads=work.reads / calls, writes=work.writes / calls, working_set=traffic / calls
            )
            return calls * gpu.compute("gpu", moved).demand.alone(rates)
    return None if cost is None else cost.demand.alone(rates)


def errors(machine: Machine, rows: Sequence[Row], seed: int = 0) -> dict[str, HeldOut]:
    """Errors of the machine at these rows, by group."""
    groups: dict[str, list[Predicted]] = {}
    for row in rows:
        try:
            predicted = seconds_of(machine, row) if group_of(row) else None
        except CannotCompute:  # a format without products has no peak
            continue
        if predicted is not None:
            groups.setdefault(group_of(row), []).append(Predicted(row.case, row.quiet, predicted))
    return {name: score(cases, seed) for name, cases in sorted(groups.items())}
