"""Views of a machine: latency, roofline, collectives, topology."""

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
from hwsim.views.kit.shown import Drawn, rows_of
from hwsim.views.kit.view import Heading, Unshowable, View
from hwsim.workload.sources import title, with_settings

if TYPE_CHECKING:
    from hwsim.graph.opgraph import OpGraph


@dataclass(frozen=True)
class Viewed(Drawn):
    """The findings of a view in a machine.

    Args:
        view: which one.
        findings: its data, of the class that `find` of the view's package gives.
        heading: machine, workload, and what was set.
    """

    view: View
    findings: Any
    heading: Heading

    @property
    def warnings(self) -> tuple[Warning, ...]:
        """Reasons to doubt the answer."""
        return self.heading.warnings

    def to_json(self) -> dict[str, Any]:
        """The document, as `--json` prints it."""
        document: dict[str, Any] = json.loads(self.view.document(self.findings, self.heading))
        return document

    def figure(self, suffix: str) -> Iterable[bytes]:
        """The view's figure."""
        try:
            return self.view.figure(self.findings, self.heading, suffix)
        except Unshowable as error:
            raise ValueError(str(error)) from error

    def __str__(self) -> str:
        return self.view.text(self.findings, self.heading)


class Latency(Viewed):
    """The time of one of everything on a machine, each next to the text's number; tables: rows, left_out."""

    COLUMNS: ClassVar = ("name", "time_s", "text_s", "ratio", "from")

    def derivation(self, row: str) -> str:
        """The lines of a row by its key, with the sources of its numbers.

        Raises:
            ValueError: there is no such row.
        """
        try:
            return self.view.text(self.findings, self.heading, key=row)
        except Unshowable as error:
            raise ValueError(f"{error}; {error.hint}") from error


class Collectives(Viewed):
    """The time of a collective by size and algorithm; table: rows."""

    COLUMNS: ClassVar = ("bytes", "time_s", "algbw", "busbw", "algorithm", "chosen")


class Topology(Viewed):
    """The topology of a machine; tables: devices, bisection, pairs."""

    TABLE: ClassVar = "pairs"
    COLUMNS: ClassVar = ("from", "to", "how", "hops", "bandwidth_bytes_per_s")


class Roofline(Viewed):
    """The ceilings of devices, and ops below them; tables: memory, compute, ops."""

    TABLE: ClassVar = "ceilings"
    COLUMNS: ClassVar = ("device", "name", "peak_b_per_s", "sustained_b_per_s", "peak_flop_per_s", "sustained_flop_per_s",
                         "ridge_flop_per_byte")  # fmt: skip

    def listed(self, table: str) -> list[Mapping[str, Any]]:
        """The rows of all devices: `ceilings` (memory and compute), or one list of the document's devices."""
        names = ("memory", "compute") if table == "ceilings" else (table,)
        devices = self.to_json()["devices"]
        return [{"device": device["device"], **row} for device in devices for name in names for row in rows_of(device, name)]


def latency(machine: Source | Machine, *, set: Mapping[str, object] | None = None) -> Latency:  # noqa: A002
    """The time of one of everything on a machine: caches, disks, networks, GPUs.

    Args:
        machine: a path, a name of the library, the text of a file, or a loaded machine.
        set: paths and values to change in its file, `{"machine.cpu.use": "ryzen-9-5950x"}`.

    Raises:
        SpecError: mistakes of the file.

    >>> latency("d2l-laptop").to_json()["rows"][0]["name"]
    'NVMe SSD, 4 KB random write'
    """
    return Latency(*_found("latency", machine, None, set))


def roofline(
    machine: Source | Machine,
    workload: Source | None = None,
    *,
    set: Mapping[str, object] | None = None,  # noqa: A002
    device: str = "",
    dtype: str | None = None,
    links: bool = False,
) -> Roofline:
    """The ceilings of each device of a machine, and the ops of a workload below them.

    Args:
        machine, workload: paths, names of the library, or texts of files.
        set: paths and values to change in the files.
        device: only this one.
        dtype: only the ceilings of this number format, "fp16".
        links: also the way from the host to the device.

    Raises:
        SpecError: mistakes of the files, or nothing to show.
    """
    return Roofline(*_found("roofline", machine, workload, set, device=device, dtype=dtype, links=links))


def collectives(
    machine: Source | Machine,
    *,
    set: Mapping[str, object] | None = None,  # noqa: A002
    op: str = "all-reduce",
    among: str = "",
    bytes: str | float = "1KiB..16GiB",  # noqa: A002
    algorithm: str = "",
) -> Collectives:
    """The time of a collective on a machine, by size and algorithm.

    Args:
        machine: a path, a name of the library, the text of a file, or a loaded machine.
        set: paths and values to change in its file.
        op: all-reduce, reduce-scatter, all-gather, all-to-all, broadcast, reduce, gather, scatter.
        among: the devices, "gpu0..3" or with commas; default: all GPUs, without any all CPUs.
        bytes: a size, several with commas, or a range that doubles, "1KiB..16GiB".
        algorithm: "auto" (what the library would choose), "all", or names with commas.

    Raises:
        SpecError: mistakes of the file, or no such operation, devices or sizes.
    """
    sizes = bytes if isinstance(bytes, str) else f"{bytes:g} B"
    options: dict[str, Any] = {"operation": op, "among": among or None, "sizes": sizes, "algorithm": algorithm or None}
    return Collectives(*_found("collectives", machine, None, set, **options))


def topology(machine: Source | Machine, *, set: Mapping[str, object] | None = None, of: str = "") -> Topology:  # noqa: A002
    """The topology of a machine: links, bisection bandwidth, distances, routes; `hwsim show --topology`.

    Args:
        machine: a path, a name of the library, the text of a file, or a loaded machine.
        set: paths and values to change in its file.
        of: the devices to go between; default: the GPUs, else the NICs.

    Raises:
        SpecError: mistakes of the file, or no such devices.
    """
    return Topology(*_found("topology", machine, None, set, of=of))


def read(
    machine: Source | Machine, workload: Source | None, settings: Mapping[str, object] | None
) -> tuple[Machine, OpGraph | None, Heading]:
    """A machine, the ops of a workload on it if there is one, and how both are called.

    Raises:
        SpecError: mistakes of the files.
        TypeError: a loaded machine cannot be changed.
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
        raise TypeError("`set` changes what files say; a machine already loaded cannot be changed")
    changes = tuple((path, str(value)) for path, value in (settings or {}).items())
    return machine, None, Heading(title(machine.name, tree, "machine"), "", changes, machine.warnings)


def found(
    view: View, machine: Source | Machine, workload: Source | None, settings: Mapping[str, object] | None, **options: Any
) -> tuple[View, Any, Heading]:
    """A view, its findings and how they are called.

    Raises:
        SpecError: mistakes of the files.
        Unshowable: an option names something that does not exist, or there is nothing to show.
    """
    built, graph, heading = read(machine, workload, settings)
    extra = {"graph": graph} if "workload" in view.needs else {}
    return view, view.find(built, **extra, **options), heading


def _found(
    name: str, machine: Source | Machine, workload: Source | None, settings: Mapping[str, object] | None, **options: Any
) -> tuple[View, Any, Heading]:
    try:
        return found(view_of(name), machine, workload, settings, **options)
    except Unshowable as error:
        raise SpecError.of(None, str(error), error.hint) from error
