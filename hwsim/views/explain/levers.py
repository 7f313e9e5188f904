"""Which numbers of the files would make a cause shorter.

A line of a derivation names its inputs and where they are from; the input that stands in a file is the number to change.
A line made of many numbers (a link's rate, a GPU's kernels) has those of its capacity instead: `OF_CAPACITY`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

from hwsim.demand import Cost, Term
from hwsim.records import dataclass
from hwsim.views.explain.cause import Cause, binding, holder, link
from hwsim.views.explain.family import family
from hwsim.views.explain.numbers import Number, Parts, together

# kind of a device and the last word of its capacity -> groups of keys; each group is one what-if
OF_CAPACITY: Final[Mapping[tuple[str, str], tuple[str, ...]]] = {
    ("cpu", "cores"): (r"flop\..*|per_cycle\..*|clock|core\.isa\..*clock|random",),
    ("cpu", "memory"): (r"memory\.bandwidth", r"memory\.dram\.(t\w+|rate)"),
    ("cpu", "line"): (r"coherence\..*",),
    ("gpu", "compute"): (r"(flop|vector)\..*",),
    ("gpu", "memory"): (r"memory\.bandwidth",),
    ("memory", "memory"): (r"bandwidth", r"dram\.(t\w+|rate)"),
    ("disk", "media"): (r"read|write",),
    ("disk", "iops"): (r"iops|write_iops",),
    ("hdd", "media"): (r"outer|inner|platter\.density", r"seek\..*|rpm|settle|overhead"),
    ("ssd", "media"): (r"read|write",),
    ("ssd", "iops"): (r"iops|write_iops",),
    ("volume", "media"): (r"iops|burst_iops|iops_per_gib|iops_most", r"bandwidth|burst_bandwidth"),
    ("filesystem", "media"): (r"bandwidth|write_bandwidth|client|stream",),
    ("nic", "tx"): (r"bandwidth",),
    ("nic", "rx"): (r"bandwidth",),
    ("nic", "tx_messages"): (r"message_rate",),
    ("nic", "rx_messages"): (r"message_rate",),
    ("switch", "backplane"): (r"bandwidth",),
}
GENERATIONS: Final = {"pcie": {1: 2, 2: 3, 3: 4, 4: 5, 5: 6}, "nvlink": {1: 2, 2: 5, 3: 5, 4: 5}}  # the next one with more
RATES: Final = ("flop", "vector", "per_cycle")  # by data type: changed together
_WORD: Final = re.compile(r"[A-Za-z][\w.-]*")


@dataclass(frozen=True, slots=True)
class Lever:
    """One change of the files.

    Args:
        text: what it is called.
        settings: paths and values of `--set`.
        numbers: those that it makes twice as good; none if it sets something else (a generation).
    """

    text: str
    settings: tuple[tuple[str, str], ...]
    numbers: tuple[Number, ...] = ()

    @classmethod
    def of(cls, numbers: Iterable[Number]) -> Lever:
        """These numbers, each twice as good."""
        kept = tuple(sorted({one.path: one for one in numbers}.values(), key=lambda one: one.path))
        return cls(together(kept), tuple(one.setting for one in kept), kept)

    def and_(self, other: Lever) -> Lever:
        """Both at once."""
        if self.numbers and other.numbers:
            return Lever.of((*self.numbers, *other.numbers))
        return Lever(f"{self.text}; {other.text}", tuple({**dict(self.settings), **dict(other.settings)}.items()))


class Levers:
    """What would help against causes, by the files of a machine.  rates: amounts per second of the run's capacities."""

    def __init__(self, parts: Parts, rates: Mapping[str, float]) -> None:
        self._parts, self._rates = parts, rates

    def against(self, cause: Cause, costs: Sequence[Cost]) -> Iterator[Lever]:
        """Changes worth trying, the nearest first.  costs: of the ops that waited for this cause, the longest first."""
        match cause.kind:
            case "capacity":
                yield from self.of_capacity(cause.name, costs)
            case "floor" if cause.op:
                yield from self._of_model(costs)
            case "floor":
                bound = [term for cost in costs if (term := binding(cost)) is not None]
                yield from self._of_terms(bound, cause.name)
            case "latency":
                own = {family(cause.name)} if cause.name.startswith("link ") else {family(cause.name), ""}
                lines = [term for cost in costs for term in cost.why if term.kind == "latency"]
                waits = [term for term in lines if family(holder(term)) in own]
                yield from self._of_terms(sorted(waits, key=lambda term: -term.seconds), cause.name, by_number=True)
            case _:
                return

    def of_capacity(self, name: str, costs: Sequence[Cost] = ()) -> Iterator[Lever]:
        """What makes a capacity twice as fast."""
        if link(name):
            yield from self._of_link(name)
            return
        terms = [term for cost in costs for term in _draws(cost, family(name))]
        exact = [] if name.endswith(".compute") else self._inputs(terms, name, loosely=False)
        listed = list(self._listed(name))
        if exact:
            yield from _grouped(self._whole(exact))
            return
        if name.endswith(".cores") and any("cores" in term.formula and term.formula.endswith("/ cores") for term in terms):
            cores = [one for one in self._parts.of_device(_device(name)) if one.key == "cores"]
            if cores:
                yield Lever.of(cores)
            return
        if not listed and (loose := self._inputs(terms, name, loosely=True)):
            yield Lever.of(loose)
        yield from map(Lever.of, listed)

    def _listed(self, name: str) -> Iterator[list[Number]]:
        device, _, last = name.rpartition(".")
        numbers = self._parts.of_device(device)
        for keys in OF_CAPACITY.get((self._parts.kind(device), last), ()):
            found = [one for one in numbers if re.fullmatch(keys, one.key) and one.better]
            if found:
                yield found

    def _of_link(self, name: str) -> Iterator[Lever]:
        numbers = self._parts.of_link(name)
        rates = [one for one in numbers if one.key in ("bandwidth", "rate")]
        if rates:
            yield Lever.of(rates)
            return
        kind = next((one.written for one in numbers if one.key == "kind"), "")
        settings, text = [], ""
        for gen in (one for one in numbers if one.key == "gen"):
            following = GENERATIONS.get(kind, {}).get(int(gen.value))
            if following is not None:
                settings.append((gen.path, str(following)))
                text = f"gen of {gen.part} {following} instead of {int(gen.value)}"
        if settings:
            yield Lever(text, tuple(settings))
        elif lanes := [one for one in numbers if one.key in ("lanes", "links")]:
            yield Lever.of(lanes)

    def _of_model(self, costs: Sequence[Cost]) -> Iterator[Lever]:
        """Ops whose time is a model's: kernels draw on their device; a flow crosses links and cards, the slowest first."""
        drawn = [each for cost in costs for each in (*cost.demand.amounts, *cost.demand.holds)]
        names = {family(name): name for name, _ in drawn}
        spent = dict.fromkeys(names, 0.0)
        for name, amount in drawn:
            spent[family(name)] = max(spent[family(name)], amount / self._rates.get(name, float("inf")))
        carries = [name for name in names if link(names[name]) or name.endswith((".tx", ".rx"))]
        flows = any((term := binding(cost)) is not None and term.kind == "flow" for cost in costs)
        if not flows:
            yield from (lever for name in names if name not in carries for lever in self.of_capacity(names[name]))
        for name in sorted(carries, key=lambda one: (-spent[one], one))[:2]:
            yield from self.of_capacity(names[name])

    def _of_terms(self, terms: Sequence[Term], device: str, *, by_number: bool = False) -> Iterator[Lever]:
        """One change for each number, those of one mapping (`overhead.*`) together; else the terms' capacities."""
        numbers = self._inputs(terms, device, loosely=False) or self._inputs(terms, device, loosely=True)
        if not numbers and by_number:
            links = (term.capacity for term in terms if link(term.capacity))
            numbers = [one for name in links for one in self._parts.of_link(name) if one.key in ("latency", "length")]
        yield from _grouped(numbers)
        if not numbers and not by_number:
            for name in dict.fromkeys(term.capacity for term in terms if term.capacity):
                yield from self.of_capacity(name)

    def _inputs(self, terms: Iterable[Term], device: str, *, loosely: bool) -> list[Number]:
        """Numbers of the files among the inputs of terms; loosely: also those that an input only speaks of."""
        found: dict[str, Number] = {}
        for term in dict.fromkeys(terms):
            near = self._near(term, device)
            for _, value, source in term.inputs:
                for one in near:
                    if one.better and (one.says(value, source) or (loosely and _spoken_of(one, source))):
                        found.setdefault(one.path, one)
        return list(found.values())

    def _near(self, term: Term, device: str) -> list[Number]:
        """Numbers of the parts that a term can be about."""
        words = [
            *_WORD.findall(term.label),
            *_WORD.findall(term.formula),
            *(each for name, _, _ in term.inputs for each in _WORD.findall(name)),
        ]
        names = dict.fromkeys([_device(term.capacity), _device(device) if "." in device else device, device, *words])
        numbers = list(self._parts.of_link(term.capacity)) if link(term.capacity) else []
        if term.kind == "latency":
            numbers += self._parts.of_libraries(device)
        for name in names:
            if name:
                numbers += self._parts.of_device(name)
        return numbers

    def _whole(self, numbers: Sequence[Number]) -> list[Number]:
        """With the rest of a mapping of rates by data type: all of `flop`, not fp16 alone."""
        found = {one.path: one for one in numbers}
        for one in numbers:
            above, dot, _ = one.key.rpartition(".")
            if dot and above in RATES:
                start = one.path.removesuffix(one.key)
                parts = self._parts.of_path(one.part)
                found |= {each.path: each for each in parts if each.path.startswith(f"{start}{above}.") and each.better}
        return list(found.values())


def _grouped(numbers: Iterable[Number]) -> Iterator[Lever]:
    """One change for each number, those of one mapping (`overhead.*`) together."""
    groups: dict[tuple[str, str, str], list[Number]] = {}
    for one in numbers:
        above, _, _ = one.key.rpartition(".")
        groups.setdefault((one.part, one.better, "flop" if above in RATES else above or one.key), []).append(one)
    yield from (Lever.of(group) for group in groups.values())


def _draws(cost: Cost, capacity: str) -> list[Term]:
    """Lines of what a cost draws of a capacity, not of times that no sharing makes longer."""
    terms = [term for term in cost.why if family(term.capacity) == capacity and term.kind != "latency"]
    amounts = [amount for name, amount in cost.demand.amounts if family(name) == capacity]
    drawn = [term for term in terms if any(abs(term.seconds - amount) <= 1e-6 * amount for amount in amounts)]
    longest = max((term.seconds for term in terms), default=0.0)
    return drawn or [term for term in terms if term.seconds >= 0.5 * longest]


def _device(capacity: str) -> str:
    return "" if link(capacity) else capacity.rpartition(".")[0]


def _spoken_of(one: Number, source: str) -> bool:
    """`flop.fp32: datasheet` speaks of flop.fp32, and `coherence, mean over pairs` of all in it that is a time."""
    if not re.search(rf"(?<![\w.]){re.escape(one.key)}(?![\w.])", source) or "." not in one.key:
        start = re.match(r"([\w.]+)[,:]", source)
        return start is not None and (one.key == start[1] or one.key.startswith(f"{start[1]}."))
    return True
