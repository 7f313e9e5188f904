"""Rows of docs/d2l.md on memory, disks and links: the chapter's arithmetic on hardware, and its exercises."""

from __future__ import annotations

from typing import Final

from scripts.d2l_row import Row, one_of, per_second

HARDWARE: Final[dict[str, tuple[str, tuple[Row, ...]]]] = {
    "Hardware": (
        (
            "The book's arithmetic on memory, disks and links, and the answers to its exercises by hand. These rows show that "
            "the `d2l-...` parts have the book's numbers; [components](validation/components.md) has the errors of real parts. "
            "A row about one op has no interval here; the command prints that of its whole run."
        ),
        (
            Row(
                "a random word from DRAM",
                1e-07,
                "closed form",
                "d2l-memory",
                "d2l/dram-random-vs-burst",
                "an address and the first word: 100 ns",
                reading=one_of("random reads", 1_000_000),
            ),
            Row(
                "a further word of the burst",
                2e-10,
                "closed form",
                "d2l-memory",
                "d2l/dram-random-vs-burst",
                "500 times less; the rest is the address of the burst",
                reading=one_of("burst read", 1_000_000),
            ),
            Row(
                "random reads from four banks",
                4e7,
                "closed form",
                "d2l-memory",
                "d2l/dram-banks",
                "four banks read concurrently, 100 ns each",
                reading=per_second("read", 1_000_000),
                unit="1/s",
            ),
            Row(
                "8 GB over the 352-bit bus of an RTX 2080 Ti",
                0.016,
                "closed form",
                "d2l-gpu-memory",
                "d2l/gpu-stream",
                'at "over 500 GB/s"; the pins have 352 / 8 x 14 GT/s = 616 GB/s, and a stream reaches 91 % of it, 559 GB/s',
            ),
            Row(
                "256 GB through the caches of four cores",
                1.0,
                "closed form",
                "d2l-quad-core",
                "d2l/cache-starvation",
                "4 x 32 B x 2 GHz = 256 GB/s",
                reading=one_of("load from cache"),
            ),
            Row(
                "256 GB from memory",
                6.4,
                "closed form",
                "d2l-quad-core",
                "d2l/cache-starvation",
                "40 GB/s",
                reading=one_of("load from memory"),
            ),
            Row(
                "a random read from a hard disk",
                0.01,
                "closed form",
                "d2l-disks",
                "d2l/hdd-random-vs-sequential",
                "about 100 per second; transferring 4 KiB adds 20 us",
                reading=one_of("random reads", 1000),
            ),
            Row(
                "the longest rotational latency at 7,200 rpm",
                60 / 7200,
                "closed form",
                "d2l-disks",
                "d2l/hdd-worst-rotation",
                'one revolution, "over 8 ms" in the book; reading the sector adds 3 us',
                reading=one_of("7200 rpm - worst case", 1000),
            ),
            Row(
                "the longest rotational latency at 10,000 rpm",
                0.006,
                "closed form",
                "d2l-disks",
                "d2l/hdd-worst-rotation",
                "exercise; as above",
                reading=one_of("10000 rpm - worst case", 1000),
            ),
            Row(
                "random reads from an SSD at queue depth 64",
                500_000.0,
                "closed form",
                "d2l-disks",
                "d2l/ssd-queue-depth",
                "the largest number in the book; each read then takes 64 / 500,000 per second = 128 us",
                reading=per_second("queue depth 64", 64_000),
                unit="1/s",
            ),
            Row(
                "32 GB over 16 lanes of PCIe 4",
                1.0,
                "closed form",
                "d2l-pcie-lanes",
                "d2l/pcie-lanes-shared",
                "16 Gb/s per lane",
                reading=one_of("x16 switch - one GPU"),
            ),
            Row(
                "160 MB over PCIe in one copy",
                10.005e-3,
                "closed form",
                "d2l-4gpu-pcie",
                "d2l/few-large-transfers",
                "5 us of latency, then 16 GB/s",
            ),
            Row(
                "160 MB over PCIe in 10,000 copies of 16 kB",
                60e-3,
                "closed form",
                "d2l-4gpu-pcie",
                "d2l/few-large-transfers",
                "10,000 x (5 us + 1 us): few large transfers",
                {"copies": 10000},
            ),
            Row(
                "San Francisco to Amsterdam, round trip",
                0.1,
                "closed form",
                "d2l-sf-amsterdam",
                "d2l/sf-amsterdam-round-trip",
                "exercise: 2 x 10,000 km at 200,000 km/s, light in glass; the book's table has 150 ms from California",
            ),
        ),
    ),
}
