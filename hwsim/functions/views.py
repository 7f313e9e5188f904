"""Views of a machine: latency numbers, rooflines, collectives and topology."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, ClassVar

from hwsim.api import Source, prepare
from hwsim.machine import Machine
from hwsim.prepare import load_machine
from hwsim.records import dataclass
from hwsim.spec import SpecError, Warning
from hwsim.views import view as view_of
from hwsim.views.kit.answer_forms import FigureAnswer, rows_of
from hwsim.views.kit.view import Heading, Unshowable, View
from hwsim.workload.sources import title, with_settings

if TYPE_CHECKING:
    from hwsim.graph.opgraph import OpGraph


@dataclass(frozen=True)
class ViewAnswer(FigureAnswer):
    """The result of a view of a machine.

    Args:
        view: the view.
        findings: result of `find` of the view's package.
        heading: machine, workload and settings.
    """

    view: View
    findings: Any
    heading: Heading

    @property
    def warnings(self) -> tuple[Warning, ...]:
        """Warnings of the machine and the workload."""
        return self.heading.warnings

    def to_json(self) -> dict[str, Any]:
        """Return the document that `--json` prints."""
        document: dict[str, Any] = json.loads(self.view.document(self.findings, self.heading))
        return document

    def figure(self, suffix: str) -> Iterable[bytes]:
        """Return the figure of the view, as chunks of a file."""
        try:
            return self.view.figure(self.findings, self.heading, suffix)
        except Unshowable as error:
            raise ValueError(str(error)) from error

    def __str__(self) -> str:
        return self.view.text(self.findings, self.heading)


class LatencyAnswer(ViewAnswer):
    """The latency numbers of a machine, next to those of Dive into Deep Learning; tables: rows, left_out."""

    COLUMNS: ClassVar = ("name", "time_s", "reference_s", "ratio", "method")

    def derivation(self, row: str) -> str:
        """Return the derivation of a row, given by its key, with the sources of its numbers.

        Raises:
            ValueError: the row does not exist.
        """
        try:
            return self.view.text(self.findings, self.heading, key=row)
        except Unshowable as error:
            raise ValueError(f"{error}; {error.hint}") from error


class CollectivesAnswer(ViewAnswer):
    """The times of a collective by size and algorithm; table: rows."""

    COLUMNS: ClassVar = ("bytes", "time_s", "algbw", "busbw", "algorithm", "chosen")


class TopologyAnswer(ViewAnswer):
    """The topology of a machine; tables: devices, bisection, pairs."""

    TABLE: ClassVar = "pairs"
    COLUMNS: ClassVar = ("from", "to", "route", "hops", "bandwidth_bytes_per_s")


class RooflineAnswer(ViewAnswer):
    """The rooflines of devices, with the ops of a workload; tables: memory, compute, ops."""

    TABLE: ClassVar = "ceilings"
    COLUMNS: ClassVar = ("device", "name", "peak_bytes_per_s", "sustained_bytes_per_s", "peak_flop_per_s", "sustained_flop_per_s",
                         "ridge_flop_per_byte")  # fmt: skip

    def listed(self, table: str) -> list[Mapping[str, Any]]:
        """Return the rows of all devices: `ceilings` (memory and compute), or another list of the document's devices."""
        names = ("memory", "compute") if table == "ceilings" else (table,)
        devices = self.to_json()["devices"]
        return [{"device": device["device"], **row} for device in devices for name in names for row in rows_of(device, name)]


def latency(machine: Source | Machine, *, set: Mapping[str, object] | None = None) -> LatencyAnswer:  # noqa: A002
    """Return the latency numbers of a machine: caches, disks, networks, GPUs.

    Args:
        machine: path, library name or content of a file, or a loaded machine.
        set: paths and values to change in the file, such as `{"machine.cpu.use": "ryzen-9-5950x"}`.

    Raises:
        SpecError: the file has mistakes.

    >>> latency("d2l-laptop").to_json()["rows"][0]["name"]
    'NVMe SSD, 4 KB random write'
    """
    return LatencyAnswer(*_found("latency", machine, None, set))


def roofline(
    machine: Source | Machine,
    workload: Source | None = None,
    *,
    set: Mapping[str, object] | None = None,  # noqa: A002
    device: str = "",
    dtype: str | None = None,
    links: bool = False,
) -> RooflineAnswer:
    """Return the roofline of each device of a machine, with the ops of a workload.

    Args:
        machine: path, library name or content of a file, or a loaded machine.
        workload: path, library name or content of a file; None: rooflines only.
        set: paths and values to change in the files.
        device: name of one device (default: all).
        dtype: number format of the compute ceilings, such as "fp16" (default: all).
        links: whether to include the path from the host to the device.

    Raises:
        SpecError: the files have mistakes, or the machine has no compute device.
    """
    return RooflineAnswer(*_found("roofline", machine, workload, set, device=device, dtype=dtype, links=links))


def collectives(
    machine: Source | Machine,
    *,
    set: Mapping[str, object] | None = None,  # noqa: A002
    op: str = "all-reduce",
    among: str = "",
    bytes: str | float = "1KiB..16GiB",  # noqa: A002
    algorithm: str = "",
) -> CollectivesAnswer:
    """Return the time of a collective on a machine, by size and algorithm.

    Args:
        machine: path, library name or content of a file, or a loaded machine.
        set: paths and values to change in the file.
        op: all-reduce, reduce-scatter, all-gather, all-to-all, broadcast, reduce, gather or scatter.
        among: devices, "gpu0..3" or a comma-separated list; default: all GPUs, or all CPUs if there is no GPU.
        bytes: size, comma-separated sizes, or a range of doubling sizes such as "1KiB..16GiB".
        algorithm: "auto" (the library's choice), "all", or comma-separated names.

    Raises:
        SpecError: the file has mistakes, or the operation, a device or a size does not exist.
    """
    sizes = bytes if isinstance(bytes, str) else f"{bytes:g} B"
    options: dict[str, Any] = {"operation": op, "among": among or None, "sizes": sizes, "algorithm": algorithm or None}
    return CollectivesAnswer(*_found("collectives", machine, None, set, **options))


def topology(machine: Source | Machine, *, set: Mapping[str, object] | None = None, of: str = "") -> TopologyAnswer:  # noqa: A002
    """Return the topology of a machine: links, bisection bandwidth, distances and routes, as `hwsim show --topology`.

    Args:
        machine: path, library name or content of a file, or a loaded machine.
        set: paths and values to change in the file.
        of: devices at the ends of the routes; default: the GPUs, else the NICs.

    Raises:
        SpecError: the file has mistakes, or a device does not exist.
    """
    return TopologyAnswer(*_found("topology", machine, None, set, of=of))


def read(
    machine: Source | Machine, workload: Source | None, settings: Mapping[str, object] | None
) -> tuple[Machine, OpGraph | None, Heading]:
    """Return a machine, the ops of a workload on it if there is one, and the heading.

    Raises:
        SpecError: the files have mistakes.
        TypeError: settings are given for a loaded machine.
    """
    if workload is not None:
        lowered = prepare(machine, workload, set=settings)
        heading = Heading(lowered.machine_name, lowered.workload_name, lowered.settings, lowered.warnings)
        return lowered.machine, lowered.graph, heading
    tree = None
    if not isinstance(machine, Machine):
        tree, _ = with_settings(machine, {"hwsim": "workload/1"}, settings or {})
        machine = load_machine(tree)
    elif settings:
        raise TypeError("`set` overrides values while files are read; it cannot change a machine that is already loaded")
    changes = tuple((path, str(value)) for path, value in (settings or {}).items())
    return machine, None, Heading(title(machine.name, tree, "machine"), "", changes, machine.warnings)


def view_findings(
    view: View, machine: Source | Machine, workload: Source | None, settings: Mapping[str, object] | None, **options: Any
) -> tuple[View, Any, Heading]:
    """Return a view, its findings and their heading.

    Raises:
        SpecError: the files have mistakes.
        Unshowable: an option names something that does not exist, or the view is empty.
    """
    built, graph, heading = read(machine, workload, settings)
    extra = {"graph": graph} if "workload" in view.needs else {}
    return view, view.find(built, **extra, **options), heading


def _found(
    name: str, machine: Source | Machine, workload: Source | None, settings: Mapping[str, object] | None, **options: Any
) -> tuple[View, Any, Heading]:
    try:
        return view_findings(view_of(name), machine, workload, settings, **options)
    except Unshowable as error:
        raise SpecError.of(None, str(error), error.hint) from error
