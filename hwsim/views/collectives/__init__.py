"""Print time, algbw and busbw of a collective among the devices of MACHINE by message size, in the format of nccl-tests, with the
algorithm and protocol that the machine's library chooses (key `collectives` of the machine's file).
"""

from __future__ import annotations

from hwsim.views.kit.view import View, ViewOption

VIEW = View(
    "collectives",
    "machine",
    "collectives/2",
    (
        ViewOption("--op", "operation", "all-reduce, reduce-scatter, all-gather, all-to-all, broadcast, reduce, gather, ...",
               "OPERATION", "all-reduce"),
        ViewOption("--among", "among", "Devices (default: all GPUs; all CPUs if there are none).", "NAMES"),
        ViewOption("--bytes", "sizes", "Sizes: a list, or a range that doubles (or :+1MiB, :log).",
               "RANGE", "1KiB..16GiB"),
        ViewOption("--algorithm", "algorithm", "auto (the library's choice), all, or a list (default: auto "
                   "if the machine names a library, else rings).", "NAMES"),
    ),
    plots="Write busbw against size (.png, .svg or .pdf).",
)  # fmt: skip
