"""The amounts of a step among few devices, for any number of bytes: the addends of each capacity are found once.

A served model, a search or a study asks for collectives of very many sizes among the same devices. Who draws from what does not
depend on the size. So the addends of each capacity are kept, in the order of the pairs; most capacities sum up the same ones.
Each size takes a few sums, the same to the last bit as sums of single transfers.

Range: transfers that draw of links and memories alone, such as kernels between GPUs (`Machine.plain_path`).
"""

from __future__ import annotations

from typing import Final, NamedTuple

from hwsim.communication.algorithms.in_network import InNetwork
from hwsim.communication.placing import Placed, handling
from hwsim.communication.rounds import Round
from hwsim.devices import Cpu, Gpu, Memory
from hwsim.links import Framing
from hwsim.machine import Machine
from hwsim.machine.libraries.overheads import Overheads
from hwsim.machine.path import on_wire
from hwsim.machine.placed import Few
from hwsim.records import dataclass

_MOST_PAIRS: Final = 1024
Sum = tuple[float, float]  # amount, and bytes behind it


class Addend(NamedTuple):
    """Draw of one transfer from one capacity, of a share of the bytes.

    amount: draw of one wire byte, which passes `times` times. memory: read once more, in place of these.
    """

    share: float
    framing: Framing | None = None
    amount: float = 1.0
    times: float = 1.0
    is_wire: bool = False
    memory: Cpu | Gpu | Memory | None = None

    def of(self, size: float, efficiency: float) -> Sum:
        """The amount, and the bytes behind it, for a collective of this size."""
        part = self.share * size
        if self.memory is not None:
            return self.memory.copy_bytes("", part)[1], part
        wire = on_wire(self.framing, part, 1.0)
        amount = wire * self.amount
        return amount / efficiency if self.is_wire else amount, wire * self.times


class Alike(NamedTuple):
    """Capacities that sum up the same addends, or draw the most of them; addends: places among all."""

    names: tuple[str, ...]
    addends: tuple[int, ...]
    most: bool


@dataclass(frozen=True, slots=True)
class Step:
    """Sums of a step.

    latencies: pairs that differ, in their order: whether a network lies between the two, and seconds.
    """

    addends: tuple[Addend, ...]
    alike: tuple[Alike, ...]
    latencies: tuple[tuple[bool, float], ...]

    def drawn(self, size: float, efficiency: float) -> tuple[dict[str, float], dict[str, float]]:
        """Amounts, and the bytes behind them, by capacity."""
        values = [addend.of(size, efficiency) for addend in self.addends]
        amounts: dict[str, float] = {}
        moved: dict[str, float] = {}
        for names, addends, most in self.alike:
            amount = past = 0.0
            for place in addends:
                more, bytes_more = values[place]
                amount, past = (max(amount, more), max(past, bytes_more)) if most else (amount + more, past + bytes_more)
            for name in names:
                amounts[name], moved[name] = amount, past
        return amounts, moved

    def waits(self, overheads: Overheads) -> tuple[float, float]:
        """Seconds before the first byte of the pair that waits longest: the library's, the links'."""
        overhead = route = 0.0
        for across, latency in self.latencies:
            step = overheads.of_step(across)
            if step + latency > overhead + route:
                overhead, route = step, latency
        return overhead, route


class Steps(Few[object, Step | None]):
    """Steps of the collectives of a machine, by their pairs and devices."""


def step_of(machine: Machine, placed: Placed, stage: Round) -> Step | None:
    """The sums of a step; None where its transfers are to be looked at one by one."""
    if len(stage.pairs) > _MOST_PAIRS:
        return None
    key = tuple(stage.pairs), stage.reduce, placed.parties, placed.algorithm.kind
    return machine.kept(Steps).known(key, _made, machine, placed, stage)


def _made(machine: Machine, placed: Placed, stage: Round) -> Step | None:
    once = isinstance(placed.algorithm, InNetwork)  # a switch adds the bytes from a link, and copies those to one
    addends: dict[object, Addend] = {}
    by_name: dict[tuple[str, bool], list[object]] = {}
    latencies: dict[tuple[bool, float], None] = {}

    def adds(name: str, key: object, addend: Addend) -> None:
        addends.setdefault(key, addend)
        by_name.setdefault((name, once and addend.is_wire), []).append(key)

    for source, target, share in stage.pairs:
        a, b = placed.parties[source], placed.parties[target]
        path = machine.plain_path(a, b, handling(machine, placed.algorithm, a, b))
        if path is None or share <= 0:
            return None
        latencies[placed.across(a, b), path.latency] = None
        for draw in path.draws:
            is_wire = machine.capacities[draw.capacity].unit == "B"
            addend = Addend(share, draw.framing, draw.amount, draw.times, is_wire)
            adds(draw.capacity, addend, addend)
        model = machine.device(b).model
        if stage.reduce and isinstance(model, Cpu | Gpu | Memory):
            adds(model.copy_bytes(b, 1.0)[0], (share, id(model)), Addend(share, memory=model))
    place = {key: at for at, key in enumerate(addends)}
    together: dict[tuple[tuple[int, ...], bool], list[str]] = {}
    for (name, most), keys in by_name.items():
        together.setdefault((tuple([place[key] for key in keys]), most), []).append(name)
    alike = tuple(Alike(tuple(names), places, most) for (places, most), names in together.items())
    return Step(tuple(addends.values()), alike, tuple(latencies))
