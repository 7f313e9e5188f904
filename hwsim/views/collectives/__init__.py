"""Time of a collective among the devices of MACHINE, algbw and busbw by size, as nccl-tests print them, and
which algorithm and protocol the machine's library chooses (the key `collectives` of the machine's file).
"""

from __future__ import annotations

from hwsim.views.kit.view import Option, View

VIEW = View(
    "collectives",
    "machine",
    "collectives/1",
    (
        Option("--op", "operation", "all-reduce, reduce-scatter, all-gather, all-to-all, broadcast, reduce, gather, ...",
               "OPERATION", "all-reduce"),
        Option("--among", "among", "The devices (default: all GPUs, without any all CPUs).", "NAMES"),
        Option("--bytes", "sizes", "Sizes: one, several with commas, or a range; it doubles unless it says :+1MiB or :log.",
               "RANGE", "1KiB..16GiB"),
        Option("--algorithm", "algorithm", "auto (what the library would choose), all, or names with commas (default: as in a "
               "workload that names none: auto where the machine says its library, else rings).", "NAMES"),
    ),
    plots="Write busbw against size (.png, .svg or .pdf).",
)  # fmt: skip
