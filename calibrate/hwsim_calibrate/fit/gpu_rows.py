"""Predictions of the cases of the suite `gpu` by the models of the simulator.

The errors at held-out cases are the differences between these predictions and the measurements.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from hwsim import api
from hwsim.devices import Gpu, MatmulShape, Work
from hwsim.devices.gpu_memory import ThreadStream
from hwsim.devices.roofline import CannotCompute
from hwsim.machine import Machine, TransferOptions
from hwsim_calibrate.fit.holdout import HeldOut, Predicted, score
from hwsim_calibrate.store import Row

MOVING: Final = ("copy", "triad", "read", "write")
HOST: Final = {
    "kind": "cpu", "name": "ideal host", "source": "guess", "ref": "never the bottleneck",
    "cores": 1, "flop": {"fp64": "1 TFLOP/s"}, "memory": {"bandwidth": "100 TB/s"},
}  # fmt: skip
_HANDLING: Final = {True: TransferOptions(), False: TransferOptions(pages="pageable", waited=True)}  # whether pinned -> options


def machine_of(part: Mapping[str, Any], link: Mapping[str, Any]) -> Machine:
    """Return a machine of the GPU, its link and an ideal host."""
    content = {"hwsim": "machine/1", "class": "ideal", "name": "gpu", "parts": {"cpu": HOST, "gpu": dict(part)}}
    return api.load_machine(content | ({"links": [dict(link)]} if link else {}))


def size_of(row: Row) -> float:
    """Return the size that orders the rows of a group: FLOP of a matmul, else bytes of the arrays."""
    if row.op == "matmul":
        return row.work.flop
    size = row.params.get("bytes", row.params.get("n", 0))
    return float(size) if isinstance(size, int | float) else 0.0


def group_of(row: Row) -> str:
    """Return the group of a row in the error report; "" for rows without a prediction."""
    if row.op == "matmul":
        return f"matmuls {row.params.get('dtype')}"
    if row.op in MOVING:
        return "memory"
    if row.op in ("h2d", "d2h"):
        return f"host copies, {'pinned' if row.params.get('pinned') else 'pageable'}"
    return {"arithmetic": "arithmetic", "d2d": "device copies", "graph": "launches", "launch": "launches"}.get(row.op, "")


def product_work(row: Row) -> Work | None:
    """Return the work of a matmul row as the op `matmul` requests it."""
    shape, work = row.params.get("shape"), row.work
    if not isinstance(shape, tuple | list):
        return None
    m, k, n = (int(side) for side in shape)
    stored = row.params.get("transposed", "none") == "b"
    return Work(
        flop=work.flop, reads=work.reads, writes=work.writes, dtype=str(row.params.get("dtype")), mix="matmul",
        product=MatmulShape(m, n, k, 1, stored),
    )  # fmt: skip


def seconds_of(machine: Machine, row: Row) -> float | None:
    """Return the predicted time of a row (s); None if the machine cannot predict it."""
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
        case op if op in MOVING:
            cost = gpu.stream("gpu", ThreadStream(reads=work.reads, writes=work.writes, working_set=traffic))
        case "matmul":
            product = product_work(row)
            cost = None if product is None else gpu.compute("gpu", product)
        case "arithmetic":
            cost = gpu.compute("gpu", Work(flop=work.flop, dtype=str(params["dtype"])))
        case "h2d" | "d2h" | "d2d":
            ends = {"h2d": ("cpu", "gpu"), "d2h": ("gpu", "cpu"), "d2d": ("gpu", "gpu")}[row.op]
            cost = machine.transfer(*ends, size_of(row), _HANDLING[bool(params.get("pinned", True))])
    return None if cost is None else cost.demand.alone(rates)


def errors(machine: Machine, rows: Sequence[Row], seed: int = 0) -> dict[str, HeldOut]:
    """Return the prediction errors of a machine by group."""
    groups: dict[str, list[Predicted]] = {}
    for row in rows:
        try:
            predicted = seconds_of(machine, row) if group_of(row) else None
        except CannotCompute:  # no peak for a format without matmuls
            continue
        if predicted is not None:
            groups.setdefault(group_of(row), []).append(Predicted(row.case, row.quiet, predicted))
    return {name: score(cases, seed) for name, cases in sorted(groups.items())}
