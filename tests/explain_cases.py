"""A machine with every kind of number, and for every kind of op a workload that asks for them."""

from __future__ import annotations

from typing import Final

MACHINE: Final = """\
hwsim: machine/1
class: ideal
name: a small server
source: datasheet
ref: made up
parts:
  cpu:
    kind: cpu
    cores: 8
    clock: 3 GHz
    per_cycle: {fp32: 32}
    overhead: 2 us
    random: 100e6 1/s
    core_bandwidth: 4 GB/s
    efficiency: {matmul: 80 %, vector: {value: 50 %, source: guess}}
    memory: {bandwidth: 40 GB/s, latency: 100 ns}
    core: {mispredict: 16, ipc: 2}
    caches:
      write_allocate: false
      levels: {L1: {size: 32 KiB, cycles: 4, per_cycle: 64}, L2: {size: 1 MiB, cycles: 14, per_cycle: 32}}
      tlbs: {L1: {entries: 64, miss: 2 ns}}
    coherence: {cluster: 50 ns}
  gpu:
    kind: gpu
    count: 2
    flop: {fp32: 10 TFLOP/s, fp16: 80 TFLOP/s}
    launch: {value: 5 us, source: measured}
    random: 10e9 1/s
    efficiency: {matmul: 60 %}
    memory: {bandwidth: 500 GB/s, latency: 600 ns}
  disk: {kind: disk, read: 2 GB/s, write: 1 GB/s, latency: 100 us, iops: 200 kIOPS, queue: 32}
links:
  - {between: [cpu, gpu*], kind: pcie, gen: 3, lanes: 16, latency: 1 us}
  - {between: [cpu, disk], kind: pcie, gen: 3, lanes: 4}
  - {name: bridge, between: [gpu0, gpu1], kind: nvlink, gen: 2, latency: 700 ns}
"""

STATEMENTS: Final = {
    "access": [
        "access: {name: strided reads, device: cpu, count: 1e8, pattern: strided, stride: 128 B, working_set: 4 MiB}",
        "access: {name: random reads, device: cpu, count: 1e8, pattern: random, cores: 4}",
        "access: {name: pointer chase, device: cpu, count: 1e6, pattern: dependent, working_set: 16 MiB, cores: 1, chains: 2}",
        "access: {name: random reads on GPU, device: gpu0, count: 1e8, bytes: 4 B, pattern: random}",
    ],
    "increment": [
        "increment: {name: shared line, device: cpu, times: 1e6, cores: 4}",
        "increment: {name: private lines, device: cpu, times: 1e6, cores: 4, line: own}",
    ],
    "compute": [
        "compute: {name: training step, device: gpu0, flop: 640 GFLOP, bytes: 2 GB, dtype: fp16, pieces: 8}",
        "compute: {name: random numbers, device: gpu1, flop: 5 GFLOP, bytes: 20 GB, mix: random}",
        "compute: {name: branches, device: cpu, instructions: 1e9, branches: 2e8, mispredicted: 5 %, cores: 2}",
        "compute: {name: L2-resident loop, device: cpu, flop: 1 MFLOP, bytes: 1 GB, mix: vector, working_set: 4 MiB}",
    ],
    "matmul": [
        "matmul: {name: matmul on GPU, device: gpu0, m: 2000, n: 1000, k: 500, batch: 3, dtype: bf16}",
        "matmul: {name: matmul on CPU, device: cpu, m: 2000, n: 1000, k: 500}",
    ],
    "attention": [
        "attention: {name: prefill, device: gpu0, batch: 2, tokens: 1024, heads: 32, kv_heads: 8, head: 128}",
        "attention: {name: decode, device: gpu1, batch: 8, cached: 4096, heads: 32, kv_heads: 8, head: 128}",
    ],
    "convolution": [
        "convolution: {name: conv forward, device: gpu0, batch: 32, channels: [64, 128], size: [56, 56], kernel: 3, padding: 1}",
        "convolution: {name: conv grad, device: gpu1, batch: 8, channels: [3, 16], size: [32, 32], kernel: 5, pass: backward}",
        "convolution: {name: conv on CPU, device: cpu, batch: 8, channels: [3, 16], size: [32, 32], kernel: 3}",
    ],
    "norm": [
        "norm: {name: batch norm, device: gpu0, shape: [32, 64, 56, 56], of: batch}",
        "norm: {name: RMS norm backward, device: cpu, shape: [8192, 1024], of: rms, pass: backward}",
    ],
    "pool": [
        "pool: {name: max pool, device: gpu0, planes: 8192, size: [112, 112], kernel: 3, result: [56, 56]}",
        "pool: {name: max pool grad, device: gpu1, planes: 8192, size: [112, 112], kernel: 3, result: [56, 56], pass: backward}",
    ],
    "embedding": [
        "embedding: {name: token embedding, device: gpu0, lookups: 8192, width: 4096, table: 128256, dtype: fp16}",
        "embedding: {name: embedding bags, device: cpu, lookups: 81920, width: 64, table: 10e6, bags: 2048}",
    ],
    "rnn": [
        "rnn: {name: lstm, device: gpu0, cell: lstm, tokens: 32, batch: 32, input: 512, hidden: 1024, layers: 2}",
    ],
    "moe": [
        "moe: {name: experts, device: gpu0, tokens: 512, hidden: 4096, inner: 1536, experts: 16, top_k: 2}",
    ],
    "elementwise": [
        "elementwise: {name: x + y, device: gpu0, shape: [1000, 1000], inputs: 2}",
        "elementwise: {name: x + z, device: cpu, shape: [1000, 1000], inputs: 2}",
    ],
    "softmax": [
        "softmax: {name: attention, device: gpu0, shape: [4096, 4096], dtype: fp16, passes: 2}",
        "softmax: {name: unfused, device: gpu1, shape: [4096, 4096], kernels: 5, passes: 5, results: 5}",
    ],
    "layernorm": [
        "layernorm: {name: layer norm, device: gpu0, shape: [4096, 4096], dtype: fp16}",
        "layernorm: {name: CPU layer norm, device: cpu, shape: [512, 512]}",
    ],
    "reduce": ["reduce: {name: sum, device: gpu0, count: 1e8}", "reduce: {name: norm, device: cpu, count: 1e6}"],
    "random": ["random: {name: x, device: gpu0, count: 1e8}", "random: {name: y, device: cpu, count: 1e8}"],
    "busy": [
        "busy: {name: decode, device: cpu, time: 6 ms, times: 64}",
        "busy: {name: decode with 12 workers, device: cpu, time: 6 ms, times: 64, workers: 12}",
        "busy: {name: step, device: gpu0, time: 30 us}",
        "busy: {name: sleep, device: disk, time: 1 ms}",
    ],
    "copy": [
        "copy: {name: copy to gpu0, from: cpu, to: gpu0, bytes: 160 MB}",
        "copy: {name: copy to gpu1, from: cpu, to: gpu1, bytes: 160 MB}",
        "copy: {name: copy within gpu0, from: gpu0, to: gpu0, bytes: 160 MB}",
        "copy: {name: load from disk, from: disk, to: gpu0, bytes: 160 MB}",
    ],
    "read": [
        "read: {name: sequential read, from: disk, bytes: 1 GB}",
        "read: {name: random reads, from: disk, bytes: 4 kB, times: 10000, access: random, depth: 64}",
    ],
    "write": ["write: {name: write checkpoint, to: disk, bytes: 16 MB, times: 10}"],
    "allgather": ["allgather: {name: all-gather, among: gpu*, bytes: 160 MB, steps: explicit}"],
    "allreduce": [
        "allreduce: {name: all-reduce gradients, among: gpu*, bytes: 160 MB, algorithm: auto}",
        "allreduce: {name: all-reduce over CPU, among: gpu*, bytes: 160 MB, algorithm: ps-cpu}",
    ],
    "alltoall": ["alltoall: {name: all-to-all tokens, among: gpu*, bytes: 64 MB}"],
    "broadcast": ["broadcast: {name: broadcast weights, among: gpu*, bytes: 160 MB}"],
    "collective": ["collective: {name: reduce loss, operation: reduce, among: gpu*, bytes: 4 B}"],
    "gather": ["gather: {name: gather metrics, among: gpu*, bytes: 1 MB}"],
    "reduce-scatter": ["reduce-scatter: {name: reduce gradient, among: gpu*, bytes: 160 MB}"],
    "scatter": ["scatter: {name: scatter batch, among: gpu*, bytes: 16 MB, skew: [3, 1]}"],
    "send": ["send: {name: send gradients, from: gpu0, to: gpu1, bytes: 40 MB}"],
}  # fmt: skip


def workload(kind: str) -> str:
    """The statements of a kind in a program, one after the other, where the program waits for them."""
    rows = "".join(f"  - {statement}\n  - wait: all\n" for statement in STATEMENTS[kind])
    return f"hwsim: workload/1\nname: {kind}\nprogram:\n{rows}"
