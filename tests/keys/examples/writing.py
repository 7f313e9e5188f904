"""What the files of all examples begin with."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

CPU = {"kind": "cpu", "cores": 4, "flop": {"fp32": "244 GFLOP/s"}, "memory": {"size": "16 GB", "bandwidth": "40 GB/s"}}
PLAIN_GPU = {
    "kind": "gpu",
    "flop": {"fp32": "15.7 TFLOP/s", "fp16": "125 TFLOP/s"},
    "memory": {"size": "16 GB", "bandwidth": "900 GB/s"},
    "launch": "5 us",
}


def machine(*links: Mapping[str, Any], more: Mapping[str, Any] | None = None, **parts: Mapping[str, Any]) -> dict[str, Any]:
    """A machine file."""
    return {"hwsim": "machine/1", "class": "ideal", "parts": parts, **({"links": list(links)} if links else {}), **(more or {})}


def program(*statements: Mapping[str, Any], **more: Any) -> dict[str, Any]:
    """A workload of statements."""
    return {"hwsim": "workload/1", "program": list(statements), **more}


def in_turn(*statements: Mapping[str, Any], **more: Any) -> dict[str, Any]:
    """A workload of statements, each of which waits for the one before."""
    return program(*(step for statement in statements for step in (statement, {"wait": "all"})), **more)


def between(a: str, b: str, kind: str = "direct", **keys: Any) -> dict[str, Any]:
    """A link."""
    own = {"bandwidth": "16 GB/s"} if kind == "direct" and not keys else {}
    return {"kind": kind, "between": [a, b], **own, **keys}
