"""The timeline as a trace-event file for Perfetto, chrome://tracing and Holistic Trace Analysis.

Format: Chromium's Trace Event Format, with categories, names and arguments as in PyTorch's Kineto: `cpu_op` and `cuda_runtime`
on threads, `kernel`, `gpu_memcpy` and `cuda_sync` on streams, joined by `args.correlation`; `user_annotation` ProfilerStep#n.
Times are decimal microseconds, exact to the femtosecond; a process is a device, a thread a queue.
"""

from __future__ import annotations

import gzip
import io
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from hwsim.results.result import Result
from hwsim.views.kit.file_output import write
from hwsim.views.trace.events import Events
from hwsim.views.trace.run import TracedRun, run_of

FILES: Final = (".json", ".json.gz")
CHUNK: Final = 4096  # events per chunk


def write_trace(result: Result, path: Path) -> Path:
    """Write one file for all devices (.json or .json.gz), or a folder with a file per rank, and return the path.

    Raises:
        FileExistsError: the folder is not empty.
    """
    if path.name.lower().endswith(FILES):
        return write(path, render(result, path.suffix))
    if path.is_dir() and any(path.iterdir()):
        raise FileExistsError(f"{path} is not empty")
    path.mkdir(exist_ok=True)
    for name, chunks in render_ranks(run_of(result)).items():
        write(path / name, chunks)
    return path


def render(result: Result, suffix: str = "") -> Iterator[bytes]:
    """Return the file of all devices in chunks, compressed if the suffix ends in "gz"; same result, same bytes."""
    chunks = _chunks(run_of(result), None, {})
    return _packed(chunks) if suffix.lower().endswith("gz") else chunks


def render_ranks(run: TracedRun) -> dict[str, Iterator[bytes]]:
    """Return the compressed file of each rank by name, in chunks."""
    files = {}
    for rank in range(run.world):
        about = {"distributedInfo": {"backend": "nccl", "rank": rank, "world_size": run.world}}
        files[f"rank{rank}.json.gz"] = _packed(_chunks(run, rank, about))
    return files


def _packed(chunks: Iterator[bytes]) -> Iterator[bytes]:
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
