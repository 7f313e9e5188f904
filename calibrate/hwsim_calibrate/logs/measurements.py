"""Measured numbers for `hwsim score`: tables, step times of profiles, and logs of benchmarks with the workload that they state.

A table has the columns `measure` and `value`, optionally `unit`, and any settings of the run, such as `machine.gpu.count`:

    measure,value,unit,batch
    step,34.9,ms,32
    step,66.0,ms,64

server logs    latencies and rates of each run, on a workload with the same requests
nccl-tests     bus bandwidth of each size, on one collective of the first ranks
fio            bandwidth or IOPS of each job, on accesses to `disk`
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

from hwsim.comparing.measured import csv_rows
from hwsim.comparing.recorded.sides import of_recording
from hwsim.formats import format_quantity
from hwsim.importers.formats import files_of, format_of
from hwsim.importers.formats import read as read_recording
from hwsim.scoring import Measurement
from hwsim.spec import Mistakes, Place, SpecError
from hwsim.units import BANDWIDTH, RATE
from hwsim_calibrate.logs import clients, fio, nccl_tests, vllm
from hwsim_calibrate.logs.log import Log, read_log
from hwsim_calibrate.logs.options import LogOptions
from hwsim_calibrate.logs.serving import ServerRun, fit_workload

COLUMNS: Final = ("measure", "value", "unit")
WANTED: Final = "measure, value; optionally unit, and settings such as machine.gpu.count"
MEANT: Final = {"makespan": "time", "step_time": "step", "e2e": "latency_mean", "throughput": "tokens_per_s"}
SERVED: Final = ("Serving Benchmark Result", '_throughput"', '"benchmarks"', '"load_summary"')  # of server logs
OPS: Final = {"all-reduce": "allreduce", "all-gather": "allgather", "all-to-all": "alltoall"}  # other names are equal
ACCESSES: Final = 10_000  # of a simulated fio job


def read(path: Path, model: str = "") -> list[Measurement]:
    """Read the measurements of a file, or of a folder with a profile per rank; a log is recognized by its content.

    Raises:
        SpecError: the file is damaged, or of none of the formats.
    """
    if path.is_dir() or (path.is_file() and format_of(path)):
        return read_trace(path)
    if path.suffix == ".csv" and path.is_file():
        return read_csv(path)
    log = read_log(path)
    if nccl_tests.is_log(log):
        found = list(_collectives(log))
    elif '"client_stats"' in log.text or '"fio version"' in log.text:
        found = list(_disks(log))
    elif not any(word in log.text for word in SERVED):
        raise log.wrong(0, "the file is not a known table, log or profile", "see `hwsim score --help`; a table ends in .csv")
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
    workload, names = None, list(run.figures)
    with suppress(SpecError):  # the model is not in the library, and the command may name the workload
        stated = fit_workload(tool, "vllm", [run], LogOptions(None, 0, model, "")).content()
        load = f"{run.rate:g} requests/s" if run.rate else f"{run.concurrency_limit or run.requests} in flight"
        title = f"{run.model}, {run.requests} requests of {run.prompt:.0f} + {run.output:.0f} tokens, {load}"
        workload = {key: value for key, value in stated.items() if key != "expect"} | {"name": title}
        names = [*stated["expect"]]
    for name in names:
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
        amount, value, shown, unit = (float(ACCESSES), run.iops, "IOPS", RATE)
        if run.size >= fio.LARGE:
            amount, value, shown, unit = (run.size * ACCESSES, run.rate, "bandwidth", BANDWIDTH)
        yield Measurement("time", value, log.place(), amount=amount, dimension=unit, shown=shown, workload=workload)


def _workload(name: str, *program: dict[str, Any]) -> dict[str, Any]:
    return {"hwsim": "workload/1", "name": name, "program": list(program)}


def read_csv(path: Path) -> list[Measurement]:
    """Read a table of measurements.

    Raises:
        SpecError: the table has mistakes; with their lines.
    """
    mistakes, found = Mistakes(), []
    for row, place in csv_rows(path, mistakes, [("measure",), ("value",)], WANTED):
        cells = {name.casefold() if name.casefold() in COLUMNS else name: cell for name, cell in row.items()}
        if missing := [name for name in COLUMNS[:2] if name not in cells]:
            mistakes.add(place, f"the row has no `{missing[0]}`", f"expected columns: {WANTED}")
            continue
        value = f"{cells['value']} {cells['unit']}" if "unit" in cells else cells["value"]
        settings = {name: cell for name, cell in cells.items() if name not in COLUMNS}
        found.append(Measurement(name_of(cells["measure"]), value, place, settings))
    if not found and not len(mistakes):
        mistakes.add(Place(str(path), 1, 1), "no measurements", f"expected columns: {WANTED}")
    mistakes.raise_if_any()
    return found


def name_of(text: str) -> str:
    """Return the name of a prediction from its spelling in a table.

    >>> name_of("step_s"), name_of("tokens/s"), name_of("TTFT mean"), name_of("step time")
    ('step', 'tokens_per_s', 'ttft_mean', 'step')
    """
    name = text.casefold().replace(" ", "_").replace("/s", "_per_s")
    name = name if name.endswith("_per_s") else name.removesuffix("_s")
    return MEANT.get(name, name)


def read_trace(path: Path) -> list[Measurement]:
    """Return the average step time of a profile: a file, or a folder with one per rank."""
    files = files_of([path])
    return [Measurement("step", of_recording(read_recording(format_of(files[0]), files)).step_s, Place(str(path), 0, 0))]
