"""The resources of a run as text and HTML show them: identical members of a family as one row."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from hwsim.formats import family, format_quantity, format_share, natural, prefixed
from hwsim.records import dataclass
from hwsim.results.critical import Share
from hwsim.results.usage import Usage

NONE: Final = "-"
WORDS: Final = {  # of kinds of capacities
    "iops": "IOPS", "line": "cache-line transfers", "media": "", "rx": "receive", "rx_messages": "messages received",
    "tx": "transmit", "tx_messages": "messages sent",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Row:
    """One line of the table of resources, as text; `utilisation` also as a number."""

    name: str
    busy: str
    moved: str
    rate: str
    utilisation: float

    @property
    def percent(self) -> str:
        return format_share(self.utilisation)


def capacities(usage: Sequence[Usage], limited: Iterable[Share] = ()) -> tuple[list[Row], list[str]]:
    """Rows of the capacities that were used, and the names of the others.

    Those that limit the run come first, by the share of its time that is due to them; then the fullest, then the busiest.
    Time that is due to a device, but to none of its capacities, counts for its fullest one, except latency, which fills none.
    """
    fullest: dict[str, Usage] = {}
    for one in usage:
        if one.device:
            fullest[one.device] = max(fullest.get(one.device, one), one, key=lambda each: (each.utilisation, each.busy_fs))
    held: dict[str, float] = {}
    for share in limited:
        elsewhere = share.cause.kind == "latency" or share.cause.line == "flow"  # of a collective, which is due to links
        name = fullest[share.cause.name].capacity if share.cause.name in fullest and not elsewhere else share.cause.name
        held[name] = held.get(name, 0.0) + share.share
    sizes: dict[str, int] = {}
    alike: dict[tuple[str, tuple[str, str, str, str] | None], list[Usage]] = {}
    for one in sorted(usage, key=lambda one: _place(one, held)):
        name = family(one.capacity)
        sizes[name] = sizes.get(name, 0) + one.alike
        alike.setdefault((name, _look(one) if one.busy_fs else None), []).append(one)
    rows, unused = [], []
    for (name, look), members in alike.items():
        count = sum(member.alike for member in members)
        title = group(sorted((resource(one) for one in members), key=natural), whole=sizes[name] == count, count=count)
        if look is not None:
            busy, moved, rate, _ = look
            rows.append(Row(title, busy, moved, rate, members[0].utilisation))
        else:
            unused.append(title)
    return rows, unused


def _place(one: Usage, held: Mapping[str, float]) -> tuple[object, ...]:
    """A sort key; shares and utilisations by what is shown of them, so that members of a family stay together."""
    return (-round(held.get(one.capacity, 0.0), 3), -round(one.utilisation, 3), -one.busy_fs, natural(one.capacity))


def resource_of(capacity: str) -> str:
    """The name of a capacity as a reader calls it, by its full name alone.

    >>> resource_of("disk.media"), resource_of("nic0.tx"), resource_of("slot:cpu->gpu")
    ('disk', 'nic0 transmit', 'slot cpu->gpu')
    """
    device, dot, kind = capacity.rpartition(".")
    if not dot or ":" in capacity:
        return capacity.replace(":", " ", 1)
    return f"{device} {WORDS.get(kind, kind)}".rstrip()


def resource(usage: Usage) -> str:
    """The name of a capacity as a reader calls it.

    >>> [resource(Usage(*pair, 0.0, "s", 0.0, kind=kind, device=device)) for *pair, kind, device in (
    ...     ("gpu0.memory", 0, "memory", "gpu0"), ("disk.media", 0, "media", "disk"), ("slot:cpu->gpu", 0, "way", ""))]
    ['gpu0 memory', 'disk', 'slot cpu->gpu']
    """
    if not usage.device:
        return usage.capacity.replace(":", " ", 1)
    return f"{usage.device} {WORDS.get(usage.kind, usage.kind)}".rstrip()


def group(names: Sequence[str], *, whole: bool, count: int = 0) -> str:
    """A name for several resources: the family if these are all of it.

    Args:
        count: number of capacities, if larger than the number of names.

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
    return format_quantity(usage.busy_s, "s"), moved, rate, format_share(usage.utilisation)
