"""Latency numbers of MACHINE: a read of each cache, a mispredicted branch, a mutex, 4 KB from each disk and
over each network, a kernel launch, ... next to the numbers of Dive into Deep Learning.
"""

from __future__ import annotations

from hwsim.views.kit.view import Option, View

VIEW = View(
    "latency",
    "machine",
    "latency/1",
    (
        Option("--all", "every", "Also name the rows that the machine has no part for."),
        Option("--explain", "key", "Derive one row: every line of it, with the sources of its numbers.", "ROW",
               without=("--json", "--all")),
    ),
)  # fmt: skip
