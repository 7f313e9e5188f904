"""Links: published figures, and numbers of *Dive into Deep Learning*."""

from __future__ import annotations

import functools
from collections.abc import Callable
from pathlib import Path
from typing import Final

from hwsim import api
from hwsim.machine import Machine, TransferOptions
from published.parts import table
from published.score import Miss, Score, held_out, scored

LARGE: Final = 1e9  # B of a transfer with negligible latency
HOST: Final = "kind: cpu, use: xeon-e5-2686v4"
WARM: Final = HOST + ", memory: {latency: 0 ns}"  # messages just written or received are in the cache


@functools.cache
def two(a: str, b: str, link: str) -> Machine:
    """Return a machine of two parts, a and b, and their link."""
    return api.load_machine(f"hwsim: machine/1\nparts: {{a: {{{a}}}, b: {{{b}}}}}\nlinks: [{{between: [a, b], {link}}}]\n")


@functools.cache
def network(card: str, link: str, switch: str) -> Machine:
    """Return a machine of two hosts with a NIC each at one switch."""
    node = f"{{kind: machine, count: 2, parts: {{cpu: {{{WARM}}}, nic: {{kind: nic, use: {card}}}}}, "
    lanes = 8 if link.startswith("kind: ethernet") else 16
    slot = f"links: [{{between: [cpu, nic], kind: pcie, use: pcie3-x16, lanes: {lanes}}}]}}"
    wires = f"{{between: [node*.nic, sw], {link}}}"
    return api.load_machine(
        f"hwsim: machine/1\nparts: {{node: {node}{slot}, sw: {{kind: switch, use: {switch}}}}}\nlinks: [{wires}]\n"
    )


def rate(of: Machine, size: float = LARGE) -> float:
    """Return the bandwidth of one large transfer from a to b, in B/s."""
    return size / of.transfer("a", "b", size).demand.alone(of.rates())


def both(of: Machine, size: float = LARGE, a: str = "a", b: str = "b") -> float:
    """Return the bandwidth of each direction in a bidirectional transfer, in B/s; both directions share the link."""
    rates = of.rates()
    there, back = (dict(of.transfer(*ends, size).demand.amounts) for ends in ((a, b), (b, a)))
    return size / max((there.get(name, 0.0) + back.get(name, 0.0)) / rates[name] for name in {*there, *back})


def taken(of: Machine, size: float, a: str = "a", b: str = "b", handling: TransferOptions | None = None) -> float:
    """Return the time of one transfer, in seconds."""
    return of.transfer(a, b, size, handling or TransferOptions()).demand.alone(of.rates())


def _gpus(name: str, links: str) -> Machine:
    part = f"kind: gpu, use: {name}"
    return two(part, part, links)


def _slot(gpu: str, link: str) -> Machine:
    return two(HOST, f"kind: gpu, use: {gpu}", f"kind: pcie, use: {link}")


# Row of the table of published figures: prediction, in B/s.
PUBLISHED: Final[dict[tuple[str, str], Callable[[], float]]] = {
    ("A100 NVLink3", "p2p unidirectional write"): lambda: rate(_gpus("a100-sxm-80gb", "kind: nvlink, use: nvlink3, links: 12")),
    ("H100 NVLink4", "p2p unidirectional write"): lambda: rate(_gpus("h100-sxm", "kind: nvlink, use: nvlink4, links: 18")),
    ("GB200 NVLink5", "p2p unidirectional write"): lambda: rate(_gpus("b200", "kind: nvlink, use: nvlink5, links: 18")),
    ("A100-class NVLink (8 GPU)", "device_to_device_memcpy_write_ce"): lambda: rate(
        _gpus("a100-sxm-80gb", "kind: nvlink, use: nvlink3, links: 12")
    ),
    ("Gen4 x16 host", "host_to_device_memcpy_ce"): lambda: rate(_slot("a100-sxm-80gb", "pcie4-x16")),
    ("Gen4 x16 host", "host_to_device_bidirectional_ce"): lambda: both(api.load_machine("dgx-a100"), a="cpu0", b="gpu0"),
    ("PCIe Gen5 x16 host", "host_to_device_memcpy_ce"): lambda: rate(_slot("h100-sxm", "pcie5-x16")),
    ("V100 PCIe3 x16", "cudaMemcpy H2D 1GiB"): lambda: rate(_slot("v100-pcie-32gb", "pcie3-x16")),
}
HPC: Final = ("omni-path-100", "kind: omnipath, use: omni-path-100", "omni-path-48")
TEN: Final = ("x520-10gbe", "kind: ethernet, use: 10gbe", "10gbe-48")
# Number of the book: its value, and the prediction.
TAUGHT: Final[dict[str, tuple[float, Callable[[], float]]]] = {
    "PCIe 4.0 x16, 32 GB/s": (32e9, lambda: rate(two(HOST, HOST, "kind: pcie, gen: 4, lanes: 16"))),
    "NVMe on PCIe 4.0 x4, up to 8 GB/s": (8e9, lambda: rate(two(HOST, HOST, "kind: pcie, gen: 4, lanes: 4"))),
    "PCIe 3.0 x16 GPU, about 12 GB/s": (12e9, lambda: rate(_slot("v100-pcie-32gb", "pcie3-x16"))),
    "1 MB to a PCIe GPU, 80 us": (80e-6, lambda: taken(_slot("v100-pcie-32gb", "pcie3-x16"), 1e6)),
    "1 MB to an NVLink GPU, 30 us (40 GB/s of first generation links)": (
        30e-6,
        lambda: taken(_gpus("p100-sxm2", "kind: nvlink, use: nvlink1, links: 2"), 1e6),
    ),
    "4 KB over 10 Gb/s Ethernet, 10 us": (10e-6, lambda: taken(network(*TEN), 4096, "node0.cpu", "node1.cpu")),
    "4 KB over a 100 Gb/s HPC fabric, 1 us": (
        1e-6,
        lambda: taken(network(*HPC), 4096, "node0.cpu", "node1.cpu", TransferOptions(protocol="rdma")),
    ),
    "California to the Netherlands and back, 150 ms": (
        150e-3,
        lambda: 2 * taken(two(HOST, HOST, "kind: ethernet, use: wan-ca-netherlands"), 64),
    ),
    "San Francisco to Amsterdam and back over 10,000 km, 100 ms": (
        100e-3,
        lambda: 2 * taken(two(HOST, HOST, "kind: ethernet, use: wan-sf-amsterdam"), 64),
    ),
}


def scores(data: Path) -> tuple[Score, ...]:
    """Return scores of published figures, of the book's numbers, and of synchronous copies."""
    published = _published(data)
    taught = [Miss(name, model(), value, "book") for name, (value, model) in TAUGHT.items()]
    calls = _calls(data)
    return (
        scored(
            "large transfers over NVLink and PCIe",
            published,
            0.05,
            metric="largest relative error",
        ),
        scored(
            "link numbers of the book: PCIe, NVLink, Ethernet, fabric, distance",
            taught,
            0.2,
            metric="largest relative error",
            why=lambda miss: "rounded in the book" if miss.relative > 0.05 else "",
            shown=len(taught),
        ),
        scored(
            "synchronous cudaMemcpy, 1 kB to 1 GB (V100, PCIe 3.0)",
            calls,
            0.05,
            "interpolated",
            metric="mean relative error",
            why=lambda _: "printed with a resolution of 10 us",
        ),
    )


def _published(data: Path) -> list[Miss]:
    rows = {(row["device"], row["metric"]): row for row in table(data / "oracles" / "published_reference_numbers.csv")}
    return [Miss(" ".join(key), model(), 1e9 * float(rows[key]["value"]), "published") for key, model in PUBLISHED.items()]


def _calls(data: Path) -> list[Miss]:
    rows = table(data / "oracles" / "gpubenches_v100_pcie3_memcpy.csv")
    half = held_out(rows, lambda row: float(row["kB"]))
    of = _slot("v100-pcie-32gb", "pcie3-x16")
    waited = TransferOptions(waited=True)
    return [
        Miss(f"{row['kB']} KiB", taken(of, 1024 * float(row["kB"]), handling=waited), float(row["ms"]) / 1e3, "calls")
        for row in half
    ]
