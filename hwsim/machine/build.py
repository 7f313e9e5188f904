"""From the tree of a file to a machine.

Each part is decoded once, however many of it there are: 1024 equal nodes are one layout and a number.
The order of parts and links in the file has no influence on the result.
"""

from __future__ import annotations

import re
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final

from hwsim import devices
from hwsim.devices import Device
from hwsim.devices.owning import PowerCurve, loaded_watts
from hwsim.formats import format_quantity, natural
from hwsim.machine import views
from hwsim.machine.capacities import Backplanes, capacities
from hwsim.machine.cards import Cards
from hwsim.machine.classes import IDEAL, check_class, class_of, completed, misspelt
from hwsim.machine.layout import Layout, Numbered, Part
from hwsim.machine.libraries.reading import read_libraries
from hwsim.machine.model import Machine
from hwsim.machine.moved import moved
from hwsim.machine.names import Names
from hwsim.machine.net import Net
from hwsim.machine.proportions import rated, unfelt
from hwsim.machine.routes import Routes
from hwsim.machine.schema import HEADER, PART_KEYS, MachineFile, PartEntry
from hwsim.machine.transfer import Transfers
from hwsim.machine.wiring import wire_all
from hwsim.origins import GIVEN
from hwsim.spec import (
    Mistakes,
    Place,
    Tree,
    Warning,
    check_header,
    decode,
    did_you_mean,
    different,
    folder,
    parameters,
    resolve,
)
from hwsim.spec.numbers import origins
from hwsim.spec.shelf import same, shared_by

if TYPE_CHECKING:
    from hwsim.devices.offers import Price

MOST_DEVICES: Final = 1_000_000
_NAME: Final = re.compile(r"[A-Za-z][A-Za-z0-9_-]{0,59}")


def build(tree: Tree, mistakes: Mistakes, resolved: Tree | None = None, *, doubts: bool = True) -> Machine | None:
    """The machine of a file as `hwsim.spec.read` gives it, or None once its mistakes are noted.

    resolved: the tree with the files that it uses, if that is known.  doubts: with the machines that tell what follows a number.
    """
    before = len(mistakes)
    if not check_header(tree, HEADER, mistakes):
        return None
    resolved = resolve(tree, mistakes, kind="machine") if resolved is None else resolved
    if len(mistakes) > before:
        return None
    warnings: list[Warning] = []
    layout = _scope(resolved, mistakes, warnings)
    layout.file = _own_name(tree) or layout.file
    let = parameters(resolved.get("let"), mistakes, kept=())
    if len(mistakes) > before:
        return None
    plain = {name: value.plain() if isinstance(value, Tree) else value for name, value in let.items()}
    ideal = resolved.text("class") == IDEAL
    machine = _machine(layout, resolved.text("name") or "", plain, different(warnings), ideal=ideal)
    unsure = tuple(moved(tree, resolved, mistakes, partial(build, doubts=False))) if doubts else ()
    return replace(machine, unsure=unsure) if unsure else machine if len(mistakes) == before else None


def _machine(layout: Layout, name: str, let: dict[str, object], warnings: tuple[Warning, ...], *, ideal: bool) -> Machine:
    net = Net(layout)
    backplanes = Backplanes(net)
    placed, groups = views.devices(layout), views.groups(layout)
    routes = Routes(net, Cards(net))
    transfers = Transfers(placed, groups, routes, backplanes)
    return Machine(
        name=name,
        devices=placed,
        nodes=views.nodes(layout),
        groups=groups,
        links=views.Links(net),
        capacities=capacities(net, backplanes),
        let=let,
        warnings=warnings,
        _names=Names(layout),
        _routes=routes,
        _transfers=transfers,
        libraries=views.libraries(layout),
        ideal=ideal,
    )


def _scope(tree: Tree, mistakes: Mistakes, warnings: list[Warning], *, ideal: bool = False) -> Layout:
    """The parts of one machine and what links them; names relative to it.

    ideal: a machine around it says so.
    """
    layout = Layout()
    file = decode(tree, MachineFile, mistakes, ignore=PART_KEYS, sourced=True)
    if file is None:
        return layout
    ideal = ideal or tree.text("class") == IDEAL
    layout.drawn, layout.file = file.power, (tree.text("use") or _own_name(tree) or Path(tree.place.file).stem)
    if file.power is not None:
        stated = origins(tree)
        layout.drawn_source = stated.get("power") or stated.get("power.loaded", GIVEN)
        _check_drawn(file.power, tree, mistakes)
    if file.price is not None:
        layout.price = _price(file.price, mistakes)
    if file.collectives is not None:
        layout.libraries = read_libraries(file.collectives, mistakes)
    before = len(mistakes)
    if not file.parts:
        mistakes.add(
            tree.key_place("parts"), "a machine without parts can do nothing", "such as cpu: {kind: cpu, use: d2l-laptop-cpu}"
        )
    parts = tree.get("parts") or tree
    for name in sorted((key for key in file.parts if key not in ("source", "ref")), key=natural):
        if _NAME.fullmatch(name) is None:
            mistakes.add(
                parts.key_place(name),
                f"'{name}' cannot be the name of a part",
                "at most 60 letters, digits, - and _, a letter first",
            )
        else:
            _part(layout, name, file.parts[name], parts, mistakes, warnings, ideal=ideal)
    if len(mistakes) == before:  # links of parts that could not be read would only repeat their mistakes
        wire_all(layout, file.links, mistakes, warnings, ideal=ideal)
        _check_power(layout, file.name, file.supply, warnings)
    return layout


def _part(
    layout: Layout, name: str, tree: Tree, parts: Tree, mistakes: Mistakes, warnings: list[Warning], *, ideal: bool
) -> None:
    """Put a part into the layout, as often as it is there."""
    entry = _entry(tree, mistakes)
    if entry is None:
        return
    if entry.count is not None and name[-1].isdigit():
        text = f"part '{name}' with a count: its first is called {name}0; names are clearer without a digit at the end"
        warnings.append(Warning("name-ends-in-digit", text, parts.key_place(name)))
    if entry.kind == "machine" and tree.get("let") is not None and entry.use is None:
        hint = "put them into the `let:` at the top, or the machine into a file of its own"
        mistakes.add(tree.key_place("let"), f"the machine '{name}' stands in this file: it has no parameters of its own", hint)
    child = _scope(tree, mistakes, warnings, ideal=ideal) if entry.kind == "machine" else None
    model = None if child is not None else _known_model(name, entry.kind, tree, parts, mistakes, warnings, ideal=ideal)
    if child is None and model is None:
        return
    count = 1 if entry.count is None else entry.count
    if layout.size + count * (child.size if child is not None else 1) > MOST_DEVICES:
        mistakes.add(tree.key_place("count"), f"more than {MOST_DEVICES} devices")
        return
    names = (name,) if entry.count is None else Numbered(name, count)
    part = Part(name, names, entry.count is not None, entry.kind, model, child, entry.fidelity, use=entry.use or "")
    if entry.price is not None and child is None:  # of a machine inside it is its own
        part.price = _price(entry.price, mistakes)
    taken = layout.clash(part)
    if taken is not None:
        mistakes.add(parts.key_place(name), f"there are two parts called {taken}")
        return
    power = child.power if child is not None else loaded_watts(getattr(model, "power", None)) or 0.0
    for _ in range(count if power else 0):
        layout.power += power
    layout.add(part)


def _entry(tree: Tree, mistakes: Mistakes) -> PartEntry | None:
    """The keys of any part; None once an unknown kind is noted."""
    kind = tree.get("kind")
    kinds = [*devices.KINDS, "machine"]
    if kind is not None and isinstance(kind.value, str) and kind.value not in kinds:
        mistakes.add(kind.place, f"there is no kind of part '{kind.value}'", did_you_mean(kind.value, kinds))
        return None
    return decode(tree, PartEntry, mistakes, ignore=dict(tree.items()))


def _known_model(
    name: str, kind: str, tree: Tree, parts: Tree, mistakes: Mistakes, warnings: list[Warning], *, ideal: bool
) -> Device | None:
    """The model of a part; among runs that share what they find, the one that an equal part had before."""
    shared: dict[tuple[str, str, bool, Place], tuple[Tree, Device | None, list[Warning]]] | None = shared_by("parts")
    place = parts.key_place(name)
    before = shared.get((name, kind, ideal, place)) if shared is not None else None
    if before is not None and same(before[0].without("price"), tree.without("price")):
        warnings += before[2]
        return before[1]
    count, noted = len(mistakes), list[Warning]()
    model = _model(kind, _completed(name, kind, tree, place, noted, ideal=ideal), mistakes)
    if shared is not None and len(mistakes) == count:
        shared[name, kind, ideal, place] = tree, model, noted
    warnings += noted
    return model


def _completed(name: str, kind: str, stated: Tree, place: Place, warnings: list[Warning], *, ideal: bool) -> Tree:
    """A part with what its class fills in, and warnings where its class was guessed."""
    tree = completed(stated, kind, ideal=ideal)
    guess = class_of(stated, kind) if tree is not stated else None
    if guess is not None and guess.guessed:
        text = f"{name} says no `vendor` and `generation`: taken for {guess.path or 'no known one'}, {guess.guessed}"
        warnings.append(Warning("class-guessed", text, place))
    if kind == "gpu" and tree is not stated and (text := misspelt(stated, kind)):
        warnings.append(Warning("class-guessed", f"{name}: {text}", place))
    return tree


def _model(kind: str, tree: Tree, mistakes: Mistakes) -> Device | None:
    check_class(tree, kind, mistakes)
    for key, node in unfelt(tree, kind):
        hint = f"state its peaks, such as flop: {{{next(iter(dict((tree.get('flop') or tree).items())), 'fp32')}: 20 TFLOP/s}}"
        mistakes.add(node.place, f"{key} has no effect: the part that is used states none for its peaks to go with", hint)
    model = decode(tree, devices.KINDS[kind], mistakes, ignore=PART_KEYS, sourced=True)
    if model is not None:
        object.__setattr__(model, "rated", rated(tree))  # no key of a file, hence no argument
        _check_dimms(model, tree, mistakes)
        _check_drawn(model.power, tree, mistakes)
    return model


def _price(tree: Tree, mistakes: Mistakes) -> Price:
    """The value of a `price:`."""
    from hwsim.devices.offers import read_price  # few machines have one

    return read_price(tree, mistakes)


def _check_drawn(power: float | PowerCurve | None, tree: Tree, mistakes: Mistakes) -> None:
    """Note contradictions inside a `power:`."""
    for key, message, hint in power.problems() if isinstance(power, PowerCurve) else ():
        mistakes.add((tree.get("power") or tree).key_place(key), message, hint)


def _own_name(tree: Tree) -> str:
    """The name of a file of the library, which may use another; "" of any other file."""
    path, machines = Path(tree.place.file), folder("machine")
    return path.relative_to(machines).with_suffix("").as_posix() if machines in path.parents else ""


def _check_dimms(model: Device, tree: Tree, mistakes: Mistakes) -> None:
    """No more memory modules than slots."""
    slots, memory = getattr(model, "dimm_slots", None), getattr(model, "memory", None)
    dimms = getattr(memory, "dimms", None)
    if slots is not None and dimms is not None and dimms > slots:
        at = tree.get("memory") or tree
        mistakes.add(
            at.key_place("dimms"), f"{dimms} DIMMs, but there are {slots} slots", "fewer and larger ones, or another CPU"
        )


def _check_power(layout: Layout, name: str, supply: float | None, warnings: list[Warning]) -> None:
    """Whether the supply of a machine gives what its parts draw at the most; `layout.power` knows that."""
    if supply is not None and layout.power > supply:
        drawn, given = format_quantity(layout.power, "W"), format_quantity(supply, "W")
        where = f"machine '{name}'" if name else "the machine"
        text = f"{where}: its parts draw up to {drawn}, but its supply gives {given}"
        warnings.append(Warning("power-over-budget", text))
