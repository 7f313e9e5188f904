"""How the devices of a machine are connected: links, bisection bandwidth, distances, and how each pair is linked."""

from __future__ import annotations

from hwsim.views.kit.view import Option, View

VIEW = View(
    "topology",
    "machine",
    "topology/1",
    (Option("--of", "of", "With --topology: the devices to go between (default: the GPUs, else the NICs).", "NAMES"),),
)
