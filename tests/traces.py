"""Synthetic traces for tests: a run of a few steps with two streams and collectives, as Kineto and as nsys write it."""

from __future__ import annotations

import gzip
import json
import re
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

US = 1000  # ns
START = 4_368_938_094_720_569  # ns of the file's clock, more digits than a float holds in microseconds


def run(rank: int = 0, world: int = 1, steps: int = 2, layers: int = 3, slow: float = 1.0, late: int = 0) -> list[dict[str, Any]]:
    """Events of a rank, times in ns: host ops launch kernels on stream 7, collectives on stream 20, copies on stream 7.

    Args:
        slow: how many times as long its kernels take. late: ns that its clock is ahead.
    """
    events: list[dict[str, Any]] = []
    now, gpu, link = START + late, START + late, 100

    def event(what: str, name: str, start: int, length: int, **more: Any) -> None:
        events.append({"what": what, "name": name, "start": start, "length": length, **more})

    for step in range(steps):
        begin = now
        for layer in range(layers):
            link += 1
            event("cpu_op", "aten::linear", now, 40 * US)
            event("cpu_op", "aten::addmm", now + 2 * US, 36 * US, shapes=[[64], [32, 128], [128, 64]], types=["float"] * 3)
            event("cuda_runtime", "cudaLaunchKernel", now + 10 * US, 6 * US, link=link)
            length = round((20 + layer) * US * slow)
            gpu = max(gpu, now + 15 * US)
            event("kernel", "ampere_sgemm_32x128_tn", gpu, length, link=link, stream=7, device=rank % 8)
            gpu += length + 1 * US
            now += 45 * US
        link += 1
        event("cpu_op", "aten::copy_", now, 20 * US, shapes=[[32, 64], [32, 64], []], types=["float", "float", "Scalar"])
        event("cuda_runtime", "cudaMemcpyAsync", now + 3 * US, 10 * US, link=link)
        gpu = max(gpu, now + 8 * US)
        event("gpu_memcpy", "Memcpy DtoH (Device -> Pinned)", gpu, 4 * US, link=link, stream=7, device=rank % 8, bytes=8192)
        gpu += 5 * US
        now += 25 * US
        if world > 1:
            link += 1
            collective = {"name": "allreduce", "elements": 8256, "ranks": list(range(world))}
            event("cpu_op", "record_param_comms", now, 20 * US, collective=collective)
            event("cuda_runtime", "cudaLaunchKernelExC", now + 5 * US, 5 * US, link=link)
            end = START + late + (step + 1) * (220 + 60 * layers) * US  # all ranks end together
            begun = max(gpu, now + 12 * US)
            event("kernel", "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)", begun, end - begun,
                  link=link, stream=20, device=rank % 8, collective=collective)  # fmt: skip
            now = gpu = end
        link += 1
        event("cuda_runtime", "cudaDeviceSynchronize", now, max(0, gpu - now) + 5 * US, link=link)
        now = max(now, gpu) + 5 * US
        event("user_annotation", f"ProfilerStep#{step}", begin, now - begin)
        now += 10 * US
    return events


def kineto(events: list[dict[str, Any]], rank: int = 0, world: int = 1, *, host: str = "") -> dict[str, Any]:
    """The document of PyTorch's profiler."""
    written: list[Any] = []
    for number, event in enumerate(events):
        args: dict[str, Any] = {"External id": number, "Ev Idx": number}
        if "shapes" in event:
            args |= {"Input Dims": event["shapes"], "Input type": event["types"], "Input Strides": [[] for _ in event["shapes"]],
                     "Concrete Inputs": ["" for _ in event["shapes"]]}  # fmt: skip
        if "link" in event:
            args["correlation"] = event["link"]
        if "stream" in event:
            args |= {"device": event["device"], "stream": event["stream"], "context": 1}
        if "bytes" in event:
            args["bytes"] = event["bytes"]
        if "collective" in event:
            said = event["collective"]
            args |= {"Collective name": said["name"], "In msg nelems": said["elements"], "Out msg nelems": said["elements"],
                     "Group size": len(said["ranks"]), "dtype": "Float", "Process Group Name": "0",
                     "Process Group Ranks": str(said["ranks"]), "In split size": "[]", "Out split size": "[]"}  # fmt: skip
        pid, tid = (event["device"], event["stream"]) if "stream" in event else (1000 + rank, 1000 + rank)
        times = {"ts": _us(event["start"]), "dur": _us(event["length"])}
        written.append({"ph": "X", "cat": event["what"], "name": event["name"], "pid": pid, "tid": tid, **times, "args": args})
        if "link" in event:
            place = {"id": event["link"], "pid": pid, "tid": tid, "ts": times["ts"], "cat": "ac2g", "name": "ac2g"}
            written.append({"ph": "f", **place, "bp": "e"} if "stream" in event else {"ph": "s", **place})
    gpus = [{"id": 0, "name": "NVIDIA A100-SXM4-80GB"}, {"id": 1, "name": "NVIDIA A100-SXM4-80GB"}]
    return {
        "schemaVersion": 1, "deviceProperties": gpus, **({"host_name": host} if host else {}),
        **({"distributedInfo": {"backend": "nccl", "rank": rank, "world_size": world}} if world > 1 else {}),
        "traceEvents": written, "traceName": "x.json", "baseTimeNanoseconds": 1_790_857_026_000_000_000,
    }  # fmt: skip


def _us(nanoseconds: int) -> str:
    """Microseconds; with three digits as a text that `dumps` writes as a number, because a float would lose the last."""
    return f"@{nanoseconds // 1000}.{nanoseconds % 1000:03d}"


def dumps(document: Any) -> str:
    """JSON with times of all digits."""
    return re.sub(r'"@([\d.]+)"', r"\1", json.dumps(document))


def write_kineto(path: Path, document: dict[str, Any]) -> Path:
    """Write a document as the profiler does, compressed if the name says so."""
    text = dumps(document).encode()
    path.write_bytes(gzip.compress(text, mtime=0) if path.suffix == ".gz" else text)
    return path


def write_nsys(path: Path, processes: dict[int, list[dict[str, Any]]]) -> Path:
    """An SQLite as `nsys export` writes it; events of each process."""
    names: dict[str, int] = {}

    def number(name: str) -> int:
        return names.setdefault(name, len(names) + 1)

    with closing(sqlite3.connect(path)) as base:
        base.executescript(
            """PRAGMA synchronous = OFF; PRAGMA journal_mode = OFF;
               CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start INT, end INT, deviceId INT, contextId INT, streamId INT,
                 correlationId INT, globalPid INT, demangledName INT, shortName INT);
               CREATE TABLE CUPTI_ACTIVITY_KIND_MEMCPY (start INT, end INT, deviceId INT, contextId INT, streamId INT,
                 correlationId INT, globalPid INT, bytes INT, copyKind INT);
               CREATE TABLE CUPTI_ACTIVITY_KIND_RUNTIME (start INT, end INT, eventClass INT, globalTid INT, correlationId INT,
                 nameId INT, returnValue INT);
               CREATE TABLE NVTX_EVENTS (start INT, end INT, eventType INT, text TEXT, globalTid INT, textId INT);
               CREATE TABLE OSRT_API (start INT, end INT, globalTid INT, nameId INT);
               CREATE TABLE StringIds (id INT, value TEXT);
               CREATE TABLE TARGET_INFO_GPU (id INT, name TEXT);"""
        )
        for pid, events in processes.items():
            process = pid << 24
            for event in events:
                start, end = event["start"] - START + 10**9, event["start"] - START + 10**9 + event["length"]
                if event["what"] == "kernel":
                    row = (start, end, event["device"], 1, event["stream"], event["link"], process, number(event["name"]), 0)
                    base.execute("INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (?,?,?,?,?,?,?,?,?)", row)
                elif event["what"] == "gpu_memcpy":
                    row = (start, end, event["device"], 1, event["stream"], event["link"], process, event["bytes"], 2)
                    base.execute("INSERT INTO CUPTI_ACTIVITY_KIND_MEMCPY VALUES (?,?,?,?,?,?,?,?,?)", row)
                elif event["what"] == "cuda_runtime":
                    named = number(event["name"] + "_v7000")
                    call = (start, end, 0, process + pid, event["link"], named, 0)
                    base.execute("INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME VALUES (?,?,?,?,?,?,?)", call)
                else:
                    name = event["name"] + (f", op_id = 1, sizes = {event['shapes']}" if "shapes" in event else "")
                    base.execute("INSERT INTO NVTX_EVENTS VALUES (?,?,?,?,?,?)", (start, end, 59, name, process + pid, None))
            base.execute("INSERT INTO OSRT_API VALUES (?,?,?,?)", (10**9, 10**9 + 5000, process + pid, 0))
        base.executemany("INSERT INTO StringIds VALUES (?,?)", [(key, name) for name, key in names.items()])
        base.executemany("INSERT INTO TARGET_INFO_GPU VALUES (?,?)", [(0, "NVIDIA A100"), (1, "NVIDIA A100")])
        base.commit()
    return path
