"""Print the latency of each level of MACHINE (caches, memory, disks, networks, GPU), next to the numbers of Dive into Deep
Learning.
"""

from __future__ import annotations

from hwsim.views.kit.view import View, ViewOption

VIEW = View(
    "latency",
    "machine",
    "latency/2",
    (
        ViewOption("--all", "every", "Also list the rows without a matching part."),
        ViewOption("--explain", "key", "Show the derivation of one row, with the sources of its numbers.", "ROW",
               without=("--json", "--all")),
    ),
)  # fmt: skip
