"""Ceilings of each device of MACHINE: bandwidth of its caches and memory, FLOP/s in each number format; and the
ops of WORKLOAD below them.
"""

from __future__ import annotations

from hwsim.views.kit.view import Option, View

FORMATS = ("fp64", "fp32", "tf32", "bf16", "fp16", "fp8", "fp4", "int64", "int32", "int8", "int4")

VIEW = View(
    "roofline",
    "machine [workload]",
    "roofline/1",
    (
        Option("--device", "device", "Only this device (default: one of each kind that computes).", "NAME"),
        Option("--dtype", "dtype", "Only the ceilings of this number format, e.g. fp16.", "FORMAT", None, FORMATS),
        Option("--links", "links", "Also the way from the host to the device (PCIe)."),
    ),
)
