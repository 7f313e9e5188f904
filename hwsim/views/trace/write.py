"""The timeline as a trace-event file, which Perfetto, chrome://tracing and Holistic Trace Analysis open.

Format: the Trace Event Format of Chromium, with the categories and arguments that PyTorch's Kineto
writes (`cat` cpu_op, cuda_runtime, kernel, gpu_memcpy; `args.correlation`, `args.stream`).
Times are microseconds in decimals, exact to the femtosecond; a process is a device, a thread a queue.
"""

from __future__ import annotations

import gzip
import io
import json
from collections.abc import Iterable, Iterator
from typing import Final

import numpy as np

from hwsim.graph.opgraph import Label, inserting_ops
from hwsim.results.result import Result
from hwsim.views.kit.lanes import Lane, lanes

COPIES: Final = frozenset({"copy", "send"})
FEMTO_PER_MICRO: Final = 10**9
CHUNK: Final = 4096  # events per chunk


def render(result: Result, suffix: str = "") -> Iterable[bytes]:
    """The file in chunks; packed if the suffix ends in "gz", with no time stamp so that same results give same bytes."""
    return _packed(_chunks(result)) if suffix.endswith("gz") else _chunks(result)


def _packed(chunks: Iterable[bytes]) -> Iterator[bytes]:
    buffer = io.BytesIO()
    with gzip.GzipFile(filename="", mode="wb", compresslevel=6, fileobj=buffer, mtime=0) as file:
        for chunk in chunks:
            file.write(chunk)
            if buffer.tell():
                yield buffer.getvalue()
                buffer.seek(0)
                buffer.truncate()
    yield buffer.getvalue()


def _chunks(result: Result) -> Iterator[bytes]:
    head = {"schemaVersion": 1, "displayTimeUnit": "ns", "traceName": f"{result.workload} on {result.machine}"}
    yield json.dumps(head, ensure_ascii=False)[:-1].encode() + b', "deviceProperties": []'
    yield b',\n"traceEvents": [\n'
    kept: list[str] = []
    first = True
    for event in _events(result):
        kept.append(event)
        if len(kept) == CHUNK:
            yield (("" if first else ",\n") + ",\n".join(kept)).encode()
            kept, first = [], False
    if kept:
        yield (("" if first else ",\n") + ",\n".join(kept)).encode()
    yield b"\n]}\n"


def _events(result: Result) -> Iterator[str]:
    rows = lanes(result)
    by_device: dict[str, list[Lane]] = {}
    for lane in rows:
        by_device.setdefault(lane.device, []).append(lane)
    tracks = {}
    for pid, device in enumerate(by_device):
        kind = result.devices.get(device, "")
        yield _meta("process_name", pid, 0, {"name": device})
        yield _meta("process_labels", pid, 0, {"labels": kind.upper() or device})
        yield _meta("process_sort_index", pid, 0, {"sort_index": pid})
        for tid, lane in enumerate(by_device[device]):
            tracks[device, lane.name] = (pid, tid)
            yield _meta("thread_name", pid, tid, {"name": lane.name})
            yield _meta("thread_sort_index", pid, tid, {"sort_index": tid})
    issuer = _hosts(result)
    issued: dict[int, int] = {}
    for op in np.flatnonzero(issuer >= 0).tolist():
        issued.setdefault(int(issuer[op]), op)
    issuers = np.where(np.isin(np.arange(len(issuer)), list(issued.values())), issuer, -1).tolist()
    for lane in rows:
        yield from _slices(result, lane, *tracks[lane.device, lane.name], issuers, issued)


def _meta(name: str, pid: int, tid: int, args: dict[str, object]) -> str:
    return json.dumps({"ph": "M", "name": name, "pid": pid, "tid": tid, "ts": 0, "args": args}, ensure_ascii=False)


def _slices(result: Result, lane: Lane, pid: int, tid: int, issuer: list[int], issued: dict[int, int]) -> Iterator[str]:
    """One complete event per op; an arrow from the op that issued it. The correlation is the issued op's number."""
    timeline = result.timeline
    flat = timeline.flat
    kind = result.devices.get(lane.device, "")
    heads: dict[int, str] = {}
    begin_of, waiting_of = result.ops.begin[lane.ops], result.ops.waiting[lane.ops]
    columns = (lane.ops, begin_of, timeline.end[lane.ops], waiting_of, flat.label[lane.ops], flat.iteration[lane.ops])
    track = f'"pid": {pid}, "tid": {tid}'
    for op, start, end, waiting, number, iteration in zip(*(column.tolist() for column in columns), strict=True):
        if number not in heads:
            heads[number] = _head(flat.graph.labels[number], kind)
        correlation = op if issuer[op] >= 0 else issued.get(op)
        linked = "" if correlation is None else f', "correlation": {correlation + 1}'
        stream = f', "device": {pid}, "stream": {tid}' if kind == "gpu" else ""
        waited = f', "waiting_us": {micro(waiting)}' if waiting else ""
        begin = micro(start)
        yield (
            f'{heads[number]}, {track}, "ts": {begin}, "dur": {micro(end - start)}, '
            f'"args": {{"op": {op}, "iteration": {iteration}, "kind": {json.dumps(flat.graph.labels[number].kind)}'
            f"{linked}{stream}{waited}}}}}"
        )
        if correlation is not None:
            arrow = '"ph": "f", "bp": "e"' if issuer[op] >= 0 else '"ph": "s"'
            yield f'{{{arrow}, "id": {correlation + 1}, "cat": "ac2g", "name": "ac2g", {track}, "ts": {begin}}}'


def _head(label: Label, kind: str) -> str:
    on_gpu = "gpu_memcpy" if label.kind in COPIES else "kernel"
    category = on_gpu if kind == "gpu" else "cpu_op"
    return f'{{"ph": "X", "cat": "{category}", "name": {json.dumps(label.name, ensure_ascii=False)}'


def micro(femtoseconds: int) -> str:
    """Microseconds, every digit of them.

    >>> micro(15_000_000_000_000), micro(1), micro(1_500_000_000)
    ('15000', '0.000000001', '1.5')
    """
    micros, rest = divmod(femtoseconds, FEMTO_PER_MICRO)
    return f"{micros}.{rest:09d}".rstrip("0") if rest else str(micros)


def _hosts(result: Result) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    """Per op the one on a host's thread that issued it, -1 if none did: what inserts it, or what that waited for."""
    flat = result.timeline.flat
    inserted = inserting_ops(flat.graph)
    placed = np.array([bool(label.device) for label in flat.graph.labels], np.bool_)[flat.label]
    dispatch = np.array([label.kind == "dispatch" for label in flat.graph.labels], np.bool_)[flat.label]
    source, target = flat.edges()
    host = np.where(placed, np.arange(len(flat)), -1)
    issued = dispatch[source] & ~placed[target]
    host[target[issued]] = source[issued]
    return np.where(inserted >= 0, host[inserted], -1)
