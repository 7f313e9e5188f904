"""The machine as boxes and lines, in the layout of `hwsim show --topology`, with their utilization in a run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from hashlib import sha256
from typing import Any, Final

from hwsim.formats import format_quantity
from hwsim.machine import Machine
from hwsim.records import dataclass
from hwsim.results.usage import Usage
from hwsim.views.topology.layout import arrange
from hwsim.views.topology.rows import HEIGHT, arc_depth, line_shape

LARGEST: Final = 4000  # limit of devices and of links; larger machines are not drawn
LEAST: Final = 5e-4  # smallest utilization that is shown


@dataclass(frozen=True, slots=True)
class MachineDrawing:
    """A drawing of a machine for the page.

    Args:
        entries: boxes, lines and frames, in inches, y downwards.
        shown_by: ids of boxes and lines by capacity.
    """

    entries: Mapping[str, Any]
    shown_by: Mapping[str, tuple[str, ...]]

    def busy(self, usage: Sequence[Usage]) -> dict[str, float]:
        """Return the utilization of each box and line: the largest of its capacities."""
        shares: dict[str, float] = {}
        for used in usage:
            if used.utilization >= LEAST:
                for shown in self.shown_by.get(used.capacity, ()):
                    shares[shown] = max(shares.get(shown, 0.0), min(used.utilization, 1.0))
        return shares


def picture(machine: Machine) -> MachineDrawing:
    """Return the drawing of a machine; an empty one if it is too large."""
    if len(machine.devices) > LARGEST or len(machine.links) > LARGEST:
        return MachineDrawing({"hash": "", "boxes": [], "lines": [], "frames": [], "round": False}, {})
    drawing = arrange(machine)
    box_of = {device: box.key for box in drawing.boxes.values() for device in box.devices}
    lines: list[dict[str, Any]] = []
    between: dict[frozenset[str], list[str]] = {}
    for number, line in enumerate(drawing.lines):
        shape = line_shape(drawing, line)
        depth = arc_depth(drawing.boxes[line.a], drawing.boxes[line.b]) if shape == "arc" else 0.0
        rate = format_quantity(line.bandwidth, "B/s")
        lines.append({"id": f"line {number}", "a": line.a, "b": line.b, "what": line.label, "rate": rate,
                      "bandwidth": line.bandwidth, "shape": shape, "depth": depth})  # fmt: skip
        between.setdefault(frozenset((line.a, line.b)), []).append(f"line {number}")
    shown_by: dict[str, tuple[str, ...]] = {}
    for link in machine.links:
        ends = frozenset((box_of.get(link.source, ""), box_of.get(link.target, "")))
        shown_by[link.capacity] = tuple(dict.fromkeys((*shown_by.get(link.capacity, ()), *between.get(ends, ()))))
    for name, capacity in machine.capacities.items():
        if capacity.device in box_of:
            shown_by[name] = (box_of[capacity.device],)
    boxes = [
        {"id": box.key, "label": box.label, "kind": box.kind, "x": box.x, "y": -box.y, "width": box.width, "height": HEIGHT}
        for box in drawing.boxes.values()
    ]
    frames = [
        {
            "label": frame.label,
            "x": frame.left,
            "y": -frame.top,
            "width": frame.right - frame.left,
            "height": frame.top - frame.bottom,
        }
        for frame in drawing.frames
    ]
    entries = {"boxes": boxes, "lines": lines, "frames": frames, "round": drawing.round}
    return MachineDrawing({"hash": sha256(repr(entries).encode()).hexdigest()[:12], **entries}, shown_by)
