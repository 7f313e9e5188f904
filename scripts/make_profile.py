"""The profile that comes with hwsim: two ranks train a small network, written as PyTorch's profiler writes a run.

python scripts/make_profile.py            writes workloads/profiles/mlp/rank0.json.gz and rank1.json.gz

It is made, not recorded: a thread issues the forward pass, autograd's thread the backward pass with an all-reduce for each
layer on a stream of its own, then the optimizer follows and the loss is read back. The second rank's GPU is 15 % slower.
"""

from __future__ import annotations

import gzip
import itertools
import json
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any, Final

FOLDER: Final = Path(__file__).resolve().parent.parent / "workloads" / "profiles" / "mlp"
BATCH: Final = 512
WIDTHS: Final = (1024, 4096, 4096, 1024)
STEPS: Final = 3
FLOPS: Final = 200e6  # per us, of products in bf16
BANDWIDTH: Final = 1.4e6  # bytes per us
NVLINK: Final = 0.2e6  # bytes per us of an all-reduce
MAIN, AUTOGRAD, COMPUTE, COMM = 4001, 4002, 7, 20
Shapes = list[list[int]]


@dataclass
class Rank:
    """A process with two threads and two streams; times in us. waits: until when each stream waits for events."""

    number: int
    slower: float
    random: Random
    events: list[dict[str, Any]] = field(default_factory=list)
    now: float = 100.0
    thread: int = MAIN
    free: dict[int, float] = field(default_factory=lambda: {COMPUTE: 0.0, COMM: 0.0})
    waits: dict[int, float] = field(default_factory=dict)
    link: int = 100
    recorded: tuple[int, float] = (0, 0.0)

    def add(self, category: str, name: str, start: float, end: float, thread: int, **args: Any) -> dict[str, Any]:
        """Write an event."""
        event = {
            "ph": "X", "cat": category, "name": name, "pid": 0 if category in ("kernel", "gpu_memcpy") else 4000, "tid": thread,
            "ts": round(start, 3), "dur": round(end - start, 3), "args": args,
        }  # fmt: skip
        self.events.append(event)
        return event

    def python(self, least: float) -> None:
        """Python between two ops."""
        self.now += least + self.random.uniform(0, 0.4 * least)

    def call(self, name: str, length: float) -> int:
        """A call of the runtime; its number."""
        self.link += 1
        self.add("cuda_runtime", name, self.now, self.now + length, self.thread, correlation=self.link)
        self.now += length
        return self.link

    def on_stream(self, category: str, name: str, long: float, stream: int, call: float) -> dict[str, Any]:
        """Launch an op of a stream; its event."""
        link = self.call("cudaLaunchKernel" if category == "kernel" else "cudaMemcpyAsync", call)
        start = max(self.now + 1.5, self.free[stream] + 1.0, self.waits.pop(stream, 0.0))
        self.free[stream] = start + long
        return self.add(category, name, start, start + long, stream, device=0, stream=stream, correlation=link)

    def op(self, name: str, shapes: Shapes, kernel: str, long: float, dtype: str = "c10::BFloat16") -> None:
        """An op of ATen that launches a kernel."""
        begin = self.now
        event = self.add("cpu_op", name, begin, begin, self.thread, **{"Input Dims": shapes, "Input type": [dtype] * len(shapes)})
        self.now += self.random.uniform(3, 5)
        self.on_stream("kernel", kernel, long * self.slower * self.random.uniform(0.98, 1.02), COMPUTE, self.random.uniform(4, 6))
        self.now += self.random.uniform(1, 2)
        event["dur"] = round(self.now - begin, 3)

    def follow(self, stream: int, other: int) -> None:
        """Let a stream wait for what another one holds so far."""
        link = self.call("cudaEventRecord", 1.0)
        wait = self.call("cudaStreamWaitEvent", 1.0)
        self.waits[stream] = max(self.waits.get(stream, 0.0), self.free[other])
        kind = {"cuda_sync_kind": "Stream Wait Event", "wait_on_stream": other, "wait_on_cuda_event_record_corr_id": link}
        self.add(
            "cuda_sync", "Stream Wait Event", self.now, self.now + 1, stream, device=0, stream=stream, correlation=wait, **kind
        )

    def product(self, name: str, m: int, n: int, k: int) -> None:
        """A product of matrices."""
        shapes = [[n], [m, k], [k, n]] if name == "aten::addmm" else [[m, k], [k, n]]
        self.op(name, shapes, f"ampere_bf16_s16816gemm_{m}x{n}x{k}", 2 * m * n * k / FLOPS)


def forward(rank: Rank) -> None:
    """Layers with their activations, and a loss."""
    rank.python(60)
    for width, after in itertools.pairwise(WIDTHS):
        rank.product("aten::addmm", BATCH, after, width)
        rank.python(12)
        rank.op("aten::relu", [[BATCH, after]], "vectorized_elementwise_kernel<relu>", 4 * BATCH * after / BANDWIDTH)
        rank.python(15)
    rank.op("aten::mean", [[BATCH, WIDTHS[-1]]], "reduce_kernel<mean>", 2 * BATCH * WIDTHS[-1] / BANDWIDTH)


def backward(rank: Rank) -> list[dict[str, Any]]:
    """Gradients of all layers on autograd's thread, each with its all-reduce; the kernels of the exchanges."""
    rank.thread, exchanges = AUTOGRAD, []
    rank.now += 8
    for width, after in reversed(list(itertools.pairwise(WIDTHS))):
        rank.op(
            "aten::threshold_backward",
            [[BATCH, after]] * 2,
            "vectorized_elementwise_kernel<drelu>",
            6 * BATCH * after / BANDWIDTH,
        )
        rank.product("aten::mm", BATCH, width, after)
        rank.product("aten::mm", width, after, BATCH)
        begin, count = rank.now, width * after
        op = rank.add("cpu_op", "c10d::allreduce_", begin, begin, AUTOGRAD)
        rank.follow(COMM, COMPUTE)
        about = {"Collective name": "allreduce", "In msg nelems": count, "Out msg nelems": count, "dtype": "BFloat16"}
        group = {"Group size": 2, "Process Group Name": "0", "Process Group Ranks": "[0, 1]"}
        event = rank.on_stream("kernel", "ncclDevKernel_AllReduce_Sum_bf16_RING_LL", 1.0, COMM, 6.0)
        event["args"] |= about | group
        rank.now += 4
        op["dur"] = round(rank.now - begin, 3)
        exchanges.append(event)
        rank.python(10)
    return exchanges


def exchange(ranks: list[Rank], kernels: list[list[dict[str, Any]]]) -> None:
    """Let each exchange begin as the last rank has come to it."""
    free = [0.0] * len(ranks)
    for of_layer in zip(*kernels, strict=True):
        for number, event in enumerate(of_layer):
            event["ts"] = round(max(event["ts"], free[number] + 1.0), 3)
        last = max(event["ts"] for event in of_layer)
        for number, event in enumerate(of_layer):
            end = last + 15 + 2 * event["args"]["In msg nelems"] / NVLINK + 0.5 * number
            event["dur"] = round(end - event["ts"], 3)
            free[number] = end
    for rank, end in zip(ranks, free, strict=True):
        rank.free[COMM] = end


def update(rank: Rank) -> None:
    """The optimizer on the main thread, and the loss read back."""
    rank.follow(COMPUTE, COMM)
    rank.now += 10
    rank.thread = MAIN
    rank.python(40)
    for width, after in itertools.pairwise(WIDTHS):
        shapes = [[width, after]] * 2
        rank.op("aten::add_", shapes, "vectorized_elementwise_kernel<add>", 6 * width * after / BANDWIDTH)
        rank.python(10)
    begin = rank.now
    item = rank.add("cpu_op", "aten::item", begin, begin, MAIN, **{"Input Dims": [[]], "Input type": ["float"]})
    copy = rank.on_stream("gpu_memcpy", "Memcpy DtoH (Device -> Pageable)", 1.5, COMPUTE, 6.0)
    copy["args"]["bytes"] = 4
    done = rank.free[COMPUTE] + 4
    rank.call("cudaStreamSynchronize", max(3.0, done - rank.now))
    item["dur"] = round(rank.now - begin, 3)


def made() -> list[Rank]:
    """Both ranks with all their events."""
    ranks = [Rank(0, 1.0, Random(1)), Rank(1, 1.15, Random(2))]
    for step in range(STEPS):
        begins = [rank.now for rank in ranks]
        kernels = []
        for rank in ranks:
            forward(rank)
            kernels.append(backward(rank))
        exchange(ranks, kernels)
        for rank, begin in zip(ranks, begins, strict=True):
            update(rank)
            rank.add("user_annotation", f"ProfilerStep#{step}", begin, rank.now + 2, MAIN)
            rank.now += 5
    return ranks


def main() -> None:
    """Write the files."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    for rank in made():
        document = {
            "schemaVersion": 1,
            "deviceProperties": [{"id": 0, "name": "NVIDIA A100-SXM4-80GB"}],
            "distributedInfo": {"backend": "nccl", "rank": rank.number, "world_size": 2},
            "traceEvents": sorted(rank.events, key=lambda event: event["ts"]),
        }
        text = json.dumps(document, separators=(",", ":")).encode()
        (FOLDER / f"rank{rank.number}.json.gz").write_bytes(gzip.compress(text, 9, mtime=0))


if __name__ == "__main__":
    main()
