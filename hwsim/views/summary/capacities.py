"""Resources of a run for text and HTML: identical members of a family in one row."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from hwsim.formats import family, format_quantity, format_share, natural, prefixed
from hwsim.records import dataclass
from hwsim.results.critical import Share
from hwsim.results.usage import Usage

NONE: Final = "-"
WORDS: Final = {  # display name by kind of capacity
    "iops": "IOPS", "line": "cache-line transfers", "media": "", "rx": "receive", "rx_messages": "messages received",
    "tx": "transmit", "tx_messages": "messages sent",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class ResourceRow:
    """A row of the table of resources.

    Args:
        name, busy, moved, rate: cells.
        utilization: utilization (fraction).
    """

    name: str
    busy: str
    moved: str
    rate: str
    utilization: float

    @property
    def percent(self) -> str:
        return format_share(self.utilization)


def capacities(usage: Sequence[Usage], limited: Iterable[Share] = ()) -> tuple[list[ResourceRow], list[str]]:
    """Return (rows of the capacities in use, names of idle ones).

    Capacities that bound the run are first, by their share of its time; then by utilization and busy time. Time due to a device
    but to none of its capacities counts for its most utilized one, except latency, which uses none.
    """
    fullest: dict[str, Usage] = {}
    for row in usage:
        if row.device:
            fullest[row.device] = max(fullest.get(row.device, row), row, key=lambda used: (used.utilization, used.busy_fs))
    held: dict[str, float] = {}
    for share in limited:
        elsewhere = share.cause.kind == "latency" or share.cause.line == "flow"  # a collective is due to links
        name = fullest[share.cause.name].capacity if share.cause.name in fullest and not elsewhere else share.cause.name
        held[name] = held.get(name, 0.0) + share.share
    sizes: dict[str, int] = {}
    alike: dict[tuple[str, tuple[str, str, str, str] | None], list[Usage]] = {}
    for row in sorted(usage, key=lambda row: _place(row, held)):
        name = family(row.capacity)
        sizes[name] = sizes.get(name, 0) + row.identical_count
        alike.setdefault((name, _look(row) if row.busy_fs else None), []).append(row)
    rows, unused = [], []
    for (name, look), members in alike.items():
        count = sum(member.identical_count for member in members)  # integers
        title = group(sorted(map(resource, members), key=natural), whole=sizes[name] == count, count=count)
        if look is not None:
            busy, moved, rate, _ = look
            rows.append(ResourceRow(title, busy, moved, rate, members[0].utilization))
        else:
            unused.append(title)
    return rows, unused


def _place(row: Usage, held: Mapping[str, float]) -> tuple[object, ...]:
    """Return a sort key; shares and utilizations are rounded as shown, so that members of a family stay together."""
    return (-round(held.get(row.capacity, 0.0), 3), -round(row.utilization, 3), -row.busy_fs, natural(row.capacity))


def resource_of(capacity: str) -> str:
    """Return the display name of a capacity, by its full name only.

    >>> resource_of("disk.media"), resource_of("nic0.tx"), resource_of("slot:cpu->gpu")
    ('disk', 'nic0 transmit', 'slot cpu->gpu')
    """
    device, dot, kind = capacity.rpartition(".")
    if not dot or ":" in capacity:
        return capacity.replace(":", " ", 1)
    return f"{device} {WORDS.get(kind, kind)}".rstrip()


def resource(usage: Usage) -> str:
    """Return the display name of a capacity.

    >>> [resource(Usage(*pair, 0.0, "s", 0.0, kind=kind, device=device)) for *pair, kind, device in (
    ...     ("gpu0.memory", 0, "memory", "gpu0"), ("disk.media", 0, "media", "disk"), ("slot:cpu->gpu", 0, "way", ""))]
    ['gpu0 memory', 'disk', 'slot cpu->gpu']
    """
    if not usage.device:
        return usage.capacity.replace(":", " ", 1)
    return f"{usage.device} {WORDS.get(usage.kind, usage.kind)}".rstrip()


def group(names: Sequence[str], *, whole: bool, count: int = 0) -> str:
    """Return a name for several resources: the name of the family if they are all its members.

    Args:
        names: names of the resources.
        whole: whether they are the whole family.
        count: number of resources if larger than the number of names.

    >>> group(["gpu0 compute", "gpu1 compute"], whole=True), group(["gpu2 compute", "gpu3 compute"], whole=False)
    ('gpu* compute (2)', 'gpu2 compute and 1 more')
    """
    count = max(count, len(names))
    if count == 1:
        return names[0]
    return f"{family(names[0])} ({count:,})" if whole else f"{names[0]} and {count - 1:,} more"


def _look(usage: Usage) -> tuple[str, str, str, str]:
    moved, rate = format_quantity(usage.moved, usage.unit), format_quantity(usage.rate, f"{usage.unit}/s")
    if usage.unit == "s":
        cores = f"{usage.rate:.3g}"
        moved, rate = NONE, f"{cores} core{'' if cores == '1' else 's'}" if usage.kind == "cores" else NONE
    elif usage.unit == "1":
        moved, rate = prefixed(usage.moved), f"{prefixed(usage.rate)}/s"
    return format_quantity(usage.busy_s, "s"), moved, rate, format_share(usage.utilization)
