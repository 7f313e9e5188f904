"""Levers: numbers in the files that would shorten a cause.

A line of a derivation names its inputs and their sources; an input from a file is a number to change. If a line depends on many
numbers (the rate of a link, the kernels of a GPU), the levers are the numbers of its capacity: `OF_CAPACITY`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from typing import Final

from hwsim.demand import Capacity, Cost, Term
from hwsim.formats import family, precise
from hwsim.origins import Origin
from hwsim.records import dataclass
from hwsim.results.cause import Cause, binding
from hwsim.views.explain.numbers import FileNumber, FileNumbers, describe_changes

# groups of keys by (kind of device, kind of capacity); each group is one change
OF_CAPACITY: Final[Mapping[tuple[str, str], tuple[str, ...]]] = {
    ("cpu", "cores"): (r"flop\..*|per_cycle\..*|clock|core\.isa\..*clock|random",),
    ("cpu", "memory"): (r"memory\.bandwidth", r"memory\.dram\.(t\w+|rate)"),
    ("cpu", "line"): (r"coherence\..*",),
    ("gpu", "compute"): (r"(flop|vector)\..*",),
    ("gpu", "memory"): (r"memory\.bandwidth", r"memory\.dram\.(t\w+|rate)"),
    ("memory", "memory"): (r"bandwidth", r"dram\.(t\w+|rate)"),
    **dict.fromkeys((("disk", "media"), ("ssd", "media")), (r"read|write",)),
    **dict.fromkeys((("disk", "iops"), ("ssd", "iops")), (r"iops|write_iops",)),
    ("hdd", "media"): (r"outer|inner|platter\.density", r"seek\..*|rpm|settle|overhead"),
    ("volume", "media"): (r"iops|burst_iops|iops_per_gib|iops_most", r"bandwidth|burst_bandwidth"),
    ("filesystem", "media"): (r"bandwidth|write_bandwidth|client|stream",),
    **dict.fromkeys((("nic", "tx"), ("nic", "rx"), ("switch", "backplane")), (r"bandwidth",)),
    **dict.fromkeys((("nic", "tx_messages"), ("nic", "rx_messages")), (r"message_rate",)),
}
GENERATIONS: Final = {"pcie": {1: 2, 2: 3, 3: 4, 4: 5, 5: 6}, "nvlink": {1: 2, 2: 5, 3: 5, 4: 5}}  # next faster one
RATES: Final = ("flop", "vector", "per_cycle")  # rates by data type, changed together
_WORD: Final = re.compile(r"[A-Za-z][\w.-]*")


@dataclass(frozen=True, slots=True)
class Lever:
    """A change of the files.

    Args:
        text: change in words.
        settings: paths and values of `--set`.
        numbers: numbers that become twice as good; empty for a different change (such as a link generation).
    """

    text: str
    settings: tuple[tuple[str, str], ...]
    numbers: tuple[FileNumber, ...] = ()

    @classmethod
    def of(cls, numbers: Iterable[FileNumber]) -> Lever:
        """Return the lever that makes each of these numbers twice as good."""
        kept = tuple(sorted({number.path: number for number in numbers}.values(), key=lambda number: number.path))
        return cls(describe_changes(kept), tuple(number.setting for number in kept), kept)

    def and_(self, other: Lever) -> Lever:
        """Return both changes at once."""
        if self.numbers and other.numbers:
            return Lever.of((*self.numbers, *other.numbers))
        return Lever(f"{self.text}; {other.text}", tuple({**dict(self.settings), **dict(other.settings)}.items()))


class Levers:
    """Finds levers for causes in the files of a machine.

    Args:
        parts: numbers of the machine's file.
        capacities: capacities of the run by name.
    """

    def __init__(self, parts: FileNumbers, capacities: Mapping[str, Capacity]) -> None:
        self._parts, self._capacities = parts, capacities
        self._near: dict[tuple[str, ...], list[tuple[tuple[str, Origin], FileNumber]]] = {}

    def against(self, cause: Cause, costs: Sequence[Cost]) -> Iterator[Lever]:
        """Yield the changes to try, most direct first.

        Args:
            cause: cause.
            costs: costs of the ops that waited for the cause, longest first.
        """
        match cause.kind:
            case "capacity":
                yield from self.of_capacity(cause.name, costs)
            case "floor" if cause.op:
                yield from self._of_model(costs)
            case "floor":
                bound = [term for cost in costs if (term := binding(cost)) is not None]
                yield from self._of_terms(bound, cause.name)
            case "latency":
                holders = {family(cause.name)} if cause.name.startswith("link ") else {family(cause.name), ""}
                lines = [term for cost in costs for term in cost.why if term.kind == "latency"]
                waits = [term for term in lines if family(term.holder) in holders]
                yield from self._of_terms(sorted(waits, key=lambda term: -term.seconds), cause.name, by_number=True)
            case _:
                return

    def of_capacity(self, name: str, costs: Sequence[Cost] = ()) -> Iterator[Lever]:
        """Yield changes that make a capacity twice as fast."""
        capacity = self._of(name)
        if capacity.link:
            yield from self._of_link(capacity)
            return
        terms = [term for cost in costs for term in _draws(cost, family(name))]
        exact = [] if capacity.kind == "compute" else self._inputs(terms, name, loosely=False)
        listed = list(self._listed(capacity))
        if exact:
            yield from _grouped(self._whole(exact))
            return
        if capacity.kind == "cores" and any("cores" in term.formula and term.formula.endswith("/ cores") for term in terms):
            cores = [number for number in self._parts.of_device(capacity.device) if number.key == "cores"]
            if cores:
                yield Lever.of(cores)
            return
        if not listed and (loose := self._inputs(terms, name, loosely=True)):
            yield Lever.of(loose)
        yield from map(Lever.of, listed)

    def _of(self, name: str) -> Capacity:
        """Return the capacity of that name; an infinite one without a kind if the run has none."""
        return self._capacities.get(name) or Capacity(name, float("inf"))

    def _listed(self, capacity: Capacity) -> Iterator[list[FileNumber]]:
        numbers = self._parts.of_device(capacity.device)
        for keys in OF_CAPACITY.get((self._parts.kind(capacity.device), capacity.kind), ()):
            if group := [number for number in numbers if re.fullmatch(keys, number.key) and number.better]:
                yield group

    def _of_link(self, capacity: Capacity) -> Iterator[Lever]:
        numbers = self._parts.of_link(capacity)
        rates = [number for number in numbers if number.key in ("bandwidth", "rate")]
        if rates:
            yield Lever.of(rates)
            return
        kind = next((number.written for number in numbers if number.key == "kind"), "")
        settings, text = [], ""
        for gen in (number for number in numbers if number.key == "gen"):
            following = GENERATIONS.get(kind, {}).get(int(gen.value))
            if following is not None:
                settings.append((gen.path, str(following)))
                text = f"gen of {gen.part} {following} instead of {int(gen.value)}"
        if settings:
            yield Lever(text, tuple(settings))
        elif lanes := [number for number in numbers if number.key in ("lanes", "links")]:
            yield Lever.of(lanes)

    def _of_model(self, costs: Sequence[Cost]) -> Iterator[Lever]:
        """Yield changes for the time of a model: device rates for kernels; links and NICs, slowest first, for a flow."""
        drawn = [amount for cost in costs for amount in (*cost.demand.amounts, *cost.demand.holds)]
        names = {family(name): name for name, _ in drawn}
        spent = dict.fromkeys(names, 0.0)
        for name, amount in drawn:
            spent[family(name)] = max(spent[family(name)], amount / self._of(name).rate)
        carries = [shared for shared, name in names.items() if (capacity := self._of(name)).link or capacity.kind in ("tx", "rx")]
        flows = any((term := binding(cost)) is not None and term.kind == "flow" for cost in costs)
        if not flows:
            yield from (lever for name in names if name not in carries for lever in self.of_capacity(names[name]))
        for name in sorted(carries, key=lambda name: (-spent[name], name))[:2]:
            yield from self.of_capacity(names[name])

    def _of_terms(self, terms: Sequence[Term], device: str, *, by_number: bool = False) -> Iterator[Lever]:
        """Yield a change per number or mapping (`overhead.*`) among the inputs of lines; else changes of their capacities."""
        numbers = self._inputs(terms, device, loosely=False) or self._inputs(terms, device, loosely=True)
        if not numbers and by_number:
            links = (capacity for term in terms if (capacity := self._of(term.capacity)).link)
            numbers = [number for link in links for number in self._parts.of_link(link) if number.key in ("latency", "length")]
        yield from _grouped(numbers)
        if not numbers and not by_number:
            for name in dict.fromkeys(term.capacity for term in terms if term.capacity):
                yield from self.of_capacity(name)

    def _inputs(self, terms: Iterable[Term], device: str, *, loosely: bool) -> list[FileNumber]:
        """Return the numbers of the files among the inputs of lines.

        Args:
            terms: lines.
            device: device of the cause.
            loosely: whether to include numbers that the source of an input only mentions.
        """
        inputs: dict[str, FileNumber] = {}
        for term in dict.fromkeys(terms):
            near = self._near_numbers(term, device)
            for _, value, source in term.inputs:
                stated, text = (value, source.plain if isinstance(source, Origin) else None), str(source)
                for statement, number in near:
                    if statement == stated or (loosely and _is_mentioned(number.key, text)):
                        inputs.setdefault(number.path, number)
        return list(inputs.values())

    def _near_numbers(self, term: Term, device: str) -> list[tuple[tuple[str, Origin], FileNumber]]:
        """Return the numbers of the parts that a line may name and that can be better, each after its value and source."""
        words = _WORD.findall(" ".join([term.label, term.formula, *(name for name, _, _ in term.inputs)]))
        capacity = self._of(term.capacity)
        names = dict.fromkeys([capacity.device or term.holder, self._of(device).device, device, *words])
        key = (term.kind, device, term.capacity, *names)
        if key not in self._near:
            numbers = list(self._parts.of_link(capacity)) if capacity.link else []
            if term.kind == "latency":
                numbers += self._parts.of_libraries(device)
            for name in filter(None, names):
                numbers += self._parts.of_device(name)
            self._near[key] = [
                ((precise(number.value, number.unit), number.source), number) for number in numbers if number.better
            ]
        return self._near[key]

    def _whole(self, numbers: Sequence[FileNumber]) -> list[FileNumber]:
        """Return the numbers, completed to whole mappings of rates by data type: all of `flop`, not only fp16."""
        by_path = {number.path: number for number in numbers}
        for number in numbers:
            above, dot, _ = number.key.rpartition(".")
            if dot and above in RATES:
                start = f"{number.path.removesuffix(number.key)}{above}."
                rates = (rate for rate in self._parts.of_path(number.part) if rate.path.startswith(start) and rate.better)
                by_path |= {rate.path: rate for rate in rates}
        return list(by_path.values())


def _grouped(numbers: Iterable[FileNumber]) -> Iterator[Lever]:
    """Yield a change per number, or for all numbers of one mapping (`overhead.*`)."""
    groups: dict[tuple[str, str, str], list[FileNumber]] = {}
    for number in numbers:
        above, _, _ = number.key.rpartition(".")
        groups.setdefault((number.part, number.better, "flop" if above in RATES else above or number.key), []).append(number)
    yield from (Lever.of(group) for group in groups.values())


def _draws(cost: Cost, capacity: str) -> list[Term]:
    """Return the lines of the amounts that a cost draws from a capacity, without times independent of sharing."""
    terms = [term for term in cost.why if family(term.capacity) == capacity and term.kind != "latency"]
    amounts = [amount for name, amount in cost.demand.amounts if family(name) == capacity]
    drawn = [term for term in terms if any(abs(term.seconds - amount) <= 1e-6 * amount for amount in amounts)]
    longest = max((term.seconds for term in terms), default=0.0)
    return drawn or [term for term in terms if term.seconds >= 0.5 * longest]


@cache
def _is_mentioned(key: str, source: str) -> bool:
    """Return whether a source mentions a number: `flop.fp32: datasheet`, or `coherence, mean over pairs` for all of
    `coherence`.
    """
    if "." not in key or key not in source or not re.search(rf"(?<![\w.]){re.escape(key)}(?![\w.])", source):
        start = re.match(r"([\w.]+)[,:]", source)
        return start is not None and (key == start[1] or key.startswith(f"{start[1]}."))
    return True
