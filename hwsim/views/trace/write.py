"""The timeline as a trace-event file for Perfetto, chrome://tracing and Holistic Trace Analysis.

Format: Chromium's Trace Event Format, with categories, names and arguments as in PyTorch's Kineto: `cpu_op` and `cuda_runtime`
on threads, `kernel`, `gpu_memcpy` and `cuda_sync` on streams, joined by `args.correlation`; `user_annotation` ProfilerStep#n.
Times are decimal microseconds, exact to the femtosecond; a process is a device, a thread a queue.
"""

from __future__ import annotations

import gzip
import io
import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from hwsim.results.result import Result
from hwsim.views.trace.events import Events
from hwsim.views.trace.run import TracedRun, run_of

CHUNK: Final = 4096  # events per chunk


def render(result: Result, suffix: str = "") -> Iterable[bytes]:
    """Return the file in chunks, compressed if the suffix ends in "gz"; same result, same bytes."""
    return write_ranks(run_of(result), None, suffix)


def write_ranks(run: TracedRun, rank: int | None, suffix: str = "", about: Mapping[str, Any] | None = None) -> Iterable[bytes]:
    """Return the file of one rank, or of all ranks; about: further entries of its head."""
    chunks = _chunks(run, rank, about or {})
    return _packed(chunks) if suffix.endswith("gz") else chunks


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


def _chunks(run: TracedRun, rank: int | None, about: Mapping[str, Any]) -> Iterator[bytes]:
    events = Events(run, rank)
    head = {
        "schemaVersion": 1,
        "displayTimeUnit": "ns",
        "traceName": f"{run.result.workload} on {run.result.machine}",
        **about,
        "deviceProperties": events.properties(),
    }
    yield json.dumps(head, ensure_ascii=False)[:-1].encode()
    yield b',\n"traceEvents": [\n'
    kept: list[str] = []
    first = True
    for event in events:
        kept.append(event)
        if len(kept) == CHUNK:
            yield (("" if first else ",\n") + ",\n".join(kept)).encode()
            kept, first = [], False
    if kept:
        yield (("" if first else ",\n") + ",\n".join(kept)).encode()
    yield b"\n]}\n"
