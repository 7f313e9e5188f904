"""Topology of a machine: links, bisection bandwidth, distances, and the route between each pair of devices."""

from __future__ import annotations

from hwsim.views.kit.view import View, ViewOption

VIEW = View(
    "topology",
    "machine",
    "topology/2",
    (ViewOption("--of", "of", "With --topology: devices to route between (default: the GPUs, else the NICs).", "NAMES"),),
)
