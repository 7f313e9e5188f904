"""Logs of benchmarks as measured numbers with the workload that they state, for `hwsim score`.

server logs    latencies and rates of each run, on a workload with the same requests
nccl-tests     bus bandwidth of each size, on one collective of the first ranks
fio            bandwidth or IOPS of each job, on accesses to `disk`
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from hwsim.formats import format_quantity
from hwsim.scoring import Measurement
from hwsim.units import BANDWIDTH, RATE
from hwsim_calibrate.logs import clients, fio, nccl_tests, vllm
from hwsim_calibrate.logs.log import Log, read_log
from hwsim_calibrate.logs.options import LogOptions
from hwsim_calibrate.logs.serving import ServerRun, fit_workload

OPS: Final = {"all-reduce": "allreduce", "all-gather": "allgather", "all-to-all": "alltoall"}  # other names are equal
ACCESSES: Final = 10_000  # of a simulated fio job


def read(path: Path, model: str = "") -> list[Measurement]:
    """Read the measurements of a log; its tool is recognized by its content.

    Raises:
        SpecError: the log is damaged, or of none of the tools.
    """
    log = read_log(path)
    if nccl_tests.is_log(log):
        found = list(_collectives(log))
    elif '"client_stats"' in log.text or '"fio version"' in log.text:
        found = list(_disks(log))
    else:
        found = [row for tool, run in _servers(log) for row in _served(tool, run, model)]
    if not found:
        raise log.wrong(0, "the file has no measurement that hwsim predicts", "the run may be throttled, or use the page cache")
    return found


def _servers(log: Log) -> Iterator[tuple[str, ServerRun]]:
    readers = {"benchmarks": ("guidellm", clients.guidellm_runs), "load_summary": ("inference-perf", clients.inference_perf_runs),
               "request_latency": ("aiperf", clients.aiperf_runs)}  # fmt: skip
    tool, runs = next((reader for key, reader in readers.items() if f'"{key}"' in log.text), ("vllm bench serve", vllm.runs_of))
    yield from ((tool, run) for run in runs(log))


def _served(tool: str, run: ServerRun, model: str) -> Iterator[Measurement]:
    stated = fit_workload(tool, "vllm", [run], LogOptions(None, 0, model, "")).content()
    workload = {key: value for key, value in stated.items() if key != "expect"}
    for name in stated["expect"]:
        yield Measurement(name, run.figures[name].value, run.log.place(), workload=workload)


def _collectives(log: Log) -> Iterator[Measurement]:
    for run in nccl_tests.runs_of(log):
        name = run.name or "all-reduce"
        for size, seconds, bus in run.rows:
            among = f"gpu0..{run.ranks - 1}" if run.ranks else "gpu*"
            title = f"{name} of {format_quantity(size, 'B')}{f', {run.ranks} ranks' if run.ranks else ''}"
            workload = _workload(title, {OPS.get(name, name): {"among": among, "bytes": f"{size:.0f} B"}})
            if bus > 0:
                yield Measurement(
                    "time", bus, log.place(run.line), amount=bus * seconds, shown="bus bandwidth", workload=workload
                )


def _disks(log: Log) -> Iterator[Measurement]:
    left: list[str] = []
    for run in fio.runs_of(log, left):
        if run.cached or run.direction == "mixed":
            continue
        access = {
            "bytes": f"{run.size:.0f} B",
            "times": ACCESSES,
            "access": "random" if run.random else "sequential",
            "depth": run.depth,
        }
        side = {"from": "$disk"} if run.direction == "read" else {"to": "$disk"}
        workload = _workload(str(run), {run.direction: side | access}) | {"let": {"disk": "disk"}}
        amount, value, shown, unit = (ACCESSES, run.iops, "IOPS", RATE)
        if run.size >= fio.LARGE:
            amount, value, shown, unit = (run.size * ACCESSES, run.rate, "bandwidth", BANDWIDTH)
        yield Measurement("time", value, log.place(), amount=amount, dimension=unit, shown=shown, workload=workload)


def _workload(name: str, *program: dict[str, Any]) -> dict[str, Any]:
    return {"hwsim": "workload/1", "name": name, "program": list(program)}
