"""Levers: numbers of the files that would make a cause shorter.

A line of a derivation names its inputs and their sources; the input that stands in a file is the number to change.
For a line made of many numbers (a link's rate, a GPU's kernels) they are the numbers of its capacity: `OF_CAPACITY`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

from hwsim.demand import Capacity, Cost, Term
from hwsim.formats import family
from hwsim.origins import Cited
from hwsim.records import dataclass
from hwsim.results.cause import Cause, binding
from hwsim.views.explain.numbers import Number, Parts, together

# kind of a device and of its capacity -> groups of keys; each group is one what-if
OF_CAPACITY: Final[Mapping[tuple[str, str], tuple[str, ...]]] = {
    ("cpu", "cores"): (r"flop\..*|per_cycle\..*|clock|core\.isa\..*clock|random",),
    ("cpu", "memory"): (r"memory\.bandwidth", r"memory\.dram\.(t\w+|rate)"),
    ("cpu", "line"): (r"coherence\..*",),
    ("gpu", "compute"): (r"(flop|vector)\..*",),
    ("gpu", "memory"): (r"memory\.bandwidth",),
    ("memory", "memory"): (r"bandwidth", r"dram\.(t\w+|rate)"),
    **dict.fromkeys((("disk", "media"), ("ssd", "media")), (r"read|write",)),
    **dict.fromkeys((("disk", "iops"), ("ssd", "iops")), (r"iops|write_iops",)),
    ("hdd", "media"): (r"outer|inner|platter\.density", r"seek\..*|rpm|settle|overhead"),
    ("volume", "media"): (r"iops|burst_iops|iops_per_gib|iops_most", r"bandwidth|burst_bandwidth"),
    ("filesystem", "media"): (r"bandwidth|write_bandwidth|client|stream",),
    **dict.fromkeys((("nic", "tx"), ("nic", "rx"), ("switch", "backplane")), (r"bandwidth",)),
    **dict.fromkeys((("nic", "tx_messages"), ("nic", "rx_messages")), (r"message_rate",)),
}
GENERATIONS: Final = {"pcie": {1: 2, 2: 3, 3: 4, 4: 5, 5: 6}, "nvlink": {1: 2, 2: 5, 3: 5, 4: 5}}  # the next one with more
RATES: Final = ("flop", "vector", "per_cycle")  # by data type: changed together
_WORD: Final = re.compile(r"[A-Za-z][\w.-]*")


@dataclass(frozen=True, slots=True)
class Lever:
    """One change of the files.

    Args:
        text: the change in words.
        settings: paths and values of `--set`.
        numbers: numbers that it makes twice as good; none if it sets something else (a generation).
    """

    text: str
    settings: tuple[tuple[str, str], ...]
    numbers: tuple[Number, ...] = ()

    @classmethod
    def of(cls, numbers: Iterable[Number]) -> Lever:
        """These numbers, each twice as good."""
        kept = tuple(sorted({number.path: number for number in numbers}.values(), key=lambda number: number.path))
        return cls(together(kept), tuple(number.setting for number in kept), kept)

    def and_(self, other: Lever) -> Lever:
        """Both at once."""
        if self.numbers and other.numbers:
            return Lever.of((*self.numbers, *other.numbers))
        return Lever(f"{self.text}; {other.text}", tuple({**dict(self.settings), **dict(other.settings)}.items()))


class Levers:
    """Levers against causes, from the files of a machine.

    Args:
        capacities: of the run, by name.
    """

    def __init__(self, parts: Parts, capacities: Mapping[str, Capacity]) -> None:
        self._parts, self._capacities = parts, capacities

    def against(self, cause: Cause, costs: Sequence[Cost]) -> Iterator[Lever]:
        """Changes to try, the most direct first.

        Args:
            costs: costs of the ops that waited for this cause, the longest first.
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
        """Changes that make a capacity twice as fast."""
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
        """The capacity of that name; of no kind where the run has none."""
        return self._capacities.get(name) or Capacity(name, float("inf"))

    def _listed(self, capacity: Capacity) -> Iterator[list[Number]]:
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
        """Changes for a time that a model gives: kernels draw on their device; a flow crosses links and NICs, slowest first."""
        drawn = [amount for cost in costs for amount in (*cost.demand.amounts, *cost.demand.holds)]
        names = {family(name): name for name, _ in drawn}
        spent = dict.fromkeys(names, 0.0)
        for name, amount in drawn:
            spent[family(name)] = max(spent[family(name)], amount / self._of(name).rate)
        carries = [each for each, name in names.items() if (of := self._of(name)).link or of.kind in ("tx", "rx")]
        flows = any((term := binding(cost)) is not None and term.kind == "flow" for cost in costs)
        if not flows:
            yield from (lever for name in names if name not in carries for lever in self.of_capacity(names[name]))
        for name in sorted(carries, key=lambda name: (-spent[name], name))[:2]:
            yield from self.of_capacity(names[name])

    def _of_terms(self, terms: Sequence[Term], device: str, *, by_number: bool = False) -> Iterator[Lever]:
        """A change for each number or mapping (`overhead.*`) among the inputs of terms; else for their capacities."""
        numbers = self._inputs(terms, device, loosely=False) or self._inputs(terms, device, loosely=True)
        if not numbers and by_number:
            links = (of for term in terms if (of := self._of(term.capacity)).link)
            numbers = [number for link in links for number in self._parts.of_link(link) if number.key in ("latency", "length")]
        yield from _grouped(numbers)
        if not numbers and not by_number:
            for name in dict.fromkeys(term.capacity for term in terms if term.capacity):
                yield from self.of_capacity(name)

    def _inputs(self, terms: Iterable[Term], device: str, *, loosely: bool) -> list[Number]:
        """Numbers of the files among the inputs of terms.

        Args:
            loosely: take also the numbers that the source of an input only mentions.
        """
        inputs: dict[str, Number] = {}
        for term in dict.fromkeys(terms):
            near = self._near(term, device)
            for _, value, source in term.inputs:
                for number in near:
                    if number.better and (number.says(value, source) or (loosely and _is_mentioned(number, source))):
                        inputs.setdefault(number.path, number)
        return list(inputs.values())

    def _near(self, term: Term, device: str) -> list[Number]:
        """Numbers of the parts that a term may name."""
        words = _WORD.findall(" ".join([term.label, term.formula, *(name for name, _, _ in term.inputs)]))
        capacity = self._of(term.capacity)
        names = dict.fromkeys([capacity.device or term.holder, self._of(device).device, device, *words])
        numbers = list(self._parts.of_link(capacity)) if capacity.link else []
        if term.kind == "latency":
            numbers += self._parts.of_libraries(device)
        for name in names:
            if name:
                numbers += self._parts.of_device(name)
        return numbers

    def _whole(self, numbers: Sequence[Number]) -> list[Number]:
        """The numbers, and the rest of a mapping of rates by data type: all of `flop`, not fp16 alone."""
        by_path = {number.path: number for number in numbers}
        for number in numbers:
            above, dot, _ = number.key.rpartition(".")
            if dot and above in RATES:
                start = f"{number.path.removesuffix(number.key)}{above}."
                rates = (rate for rate in self._parts.of_path(number.part) if rate.path.startswith(start) and rate.better)
                by_path |= {rate.path: rate for rate in rates}
        return list(by_path.values())


def _grouped(numbers: Iterable[Number]) -> Iterator[Lever]:
    """A change for each number, or for all numbers of one mapping (`overhead.*`)."""
    groups: dict[tuple[str, str, str], list[Number]] = {}
    for number in numbers:
        above, _, _ = number.key.rpartition(".")
        groups.setdefault((number.part, number.better, "flop" if above in RATES else above or number.key), []).append(number)
    yield from (Lever.of(group) for group in groups.values())


def _draws(cost: Cost, capacity: str) -> list[Term]:
    """Lines of the amounts that a cost draws of a capacity, without times that sharing does not make longer."""
    terms = [term for term in cost.why if family(term.capacity) == capacity and term.kind != "latency"]
    amounts = [amount for name, amount in cost.demand.amounts if family(name) == capacity]
    drawn = [term for term in terms if any(abs(term.seconds - amount) <= 1e-6 * amount for amount in amounts)]
    longest = max((term.seconds for term in terms), default=0.0)
    return drawn or [term for term in terms if term.seconds >= 0.5 * longest]


def _is_mentioned(number: Number, source: Cited) -> bool:
    """`flop.fp32: datasheet` mentions flop.fp32, and `coherence, mean over pairs` every time in `coherence`."""
    if not re.search(rf"(?<![\w.]){re.escape(number.key)}(?![\w.])", str(source)) or "." not in number.key:
        start = re.match(r"([\w.]+)[,:]", str(source))
        return start is not None and (number.key == start[1] or number.key.startswith(f"{start[1]}."))
    return True
