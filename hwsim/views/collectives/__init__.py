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
        Option("--among", "among", "Devices (default: all GPUs; all CPUs if there are none).", "NAMES"),
        Option("--bytes", "sizes", "Sizes: a list, or a range that doubles (or :+1MiB, :log).",
               "RANGE", "1KiB..16GiB"),
        Option("--algorithm", "algorithm", "auto (the library's choice), all, or a list (default: auto if the machine names a "
               "library, else rings).", "NAMES"),
    ),
    plots="Write busbw against size (.png, .svg or .pdf).",
)  # fmt: skip
