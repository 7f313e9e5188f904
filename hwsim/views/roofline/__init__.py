"""Print the roofline of each device of MACHINE: bandwidth of caches and memory, FLOP/s of each number format; and the ops of
WORKLOAD below it.
"""

from __future__ import annotations

from hwsim.views.kit.view import View, ViewOption

FORMATS = ("fp64", "fp32", "tf32", "bf16", "fp16", "fp8", "fp4", "int64", "int32", "int8", "int4")

VIEW = View(
    "roofline",
    "machine [workload]",
    "roofline/2",
    (
        ViewOption("--device", "device", "Device (default: one of each kind that computes).", "NAME"),
        ViewOption("--dtype", "dtype", "Number format, for example fp16 (default: all).", "FORMAT", None, FORMATS),
        ViewOption("--links", "links", "Add the link from the host (PCIe)."),
    ),
)
