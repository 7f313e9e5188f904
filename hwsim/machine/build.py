"""Construction of a machine from the tree of a file.

Each part is decoded once, regardless of its count: 1024 equal nodes are one layout and a number. The order of parts and links in
the file does not affect the result.
"""

from __future__ import annotations

import re
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final

from hwsim import devices
from hwsim.devices import Device
from hwsim.devices.power_curves import PowerCurve, loaded_watts
from hwsim.formats import format_quantity, natural
from hwsim.machine import views
from hwsim.machine.capacities import Backplanes, capacities
from hwsim.machine.classes import IDEAL, check_class, class_of, misspelt, with_class_defaults
from hwsim.machine.layout import Layout, LayoutPart, NumberedNames
from hwsim.machine.libraries.parser import read_libraries
from hwsim.machine.link_entries import wire_all
from hwsim.machine.model import Machine
from hwsim.machine.moved_numbers import moved
from hwsim.machine.names import NameIndex
from hwsim.machine.net import Net
from hwsim.machine.nic_assignment import NicAssignment
from hwsim.machine.proportions import ineffective_numbers, rated_power
from hwsim.machine.routes import Routes
from hwsim.machine.schema import HEADER, PART_KEYS, MachineFile, PartEntry
from hwsim.machine.transfer import Transfers
from hwsim.origins import GIVEN
from hwsim.spec import (
    Mistakes,
    Place,
    Tree,
    Warning,
    check_header,
    decode,
    did_you_mean,
    distinct_warnings,
    folder,
    parameters,
    resolve,
)
from hwsim.spec.memo import memo_table, same
from hwsim.spec.numbers import origins

if TYPE_CHECKING:
    from hwsim.devices.offers import Price

MAX_DEVICES: Final = 1_000_000  # maximum devices of a machine
_NAME: Final = re.compile(r"[A-Za-z][A-Za-z0-9_-]{0,59}")


def build(tree: Tree, mistakes: Mistakes, resolved: Tree | None = None, *, doubts: bool = True) -> Machine | None:
    """Return the machine of a file; add mistakes and return None if it has any.

    Args:
        tree: tree of the file, as returned by `hwsim.spec.read`.
        mistakes: collects the mistakes.
        resolved: tree with the files that it uses, if available.
        doubts: whether to also build the machines with moved uncertain numbers.
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
    machine = _machine(layout, resolved.text("name") or "", plain, distinct_warnings(warnings), ideal=ideal)
    if (named := resolved.get("scores")) is not None:
        from hwsim.machine.scores import gpu_name, read_scores

        machine = replace(machine, scores=read_scores(named, gpu_name(machine), mistakes))
    unsure = tuple(moved(tree, resolved, mistakes, partial(build, doubts=False))) if doubts else ()
    return replace(machine, unsure=unsure) if unsure else machine if len(mistakes) == before else None


def _machine(layout: Layout, name: str, let: dict[str, object], warnings: tuple[Warning, ...], *, ideal: bool) -> Machine:
    net = Net(layout)
    backplanes = Backplanes(net)
    placed, groups = views.devices(layout), views.groups(layout)
    routes = Routes(net, NicAssignment(net))
    transfers = Transfers(placed, groups, routes, backplanes)
    return Machine(
        name=name,
        devices=placed,
        nodes=views.nodes(layout),
        groups=groups,
        links=views.LinkCollection(net),
        capacities=capacities(net, backplanes),
        let=let,
        warnings=warnings,
        _names=NameIndex(layout),
        _routes=routes,
        _transfers=transfers,
        libraries=views.libraries(layout),
        ideal=ideal,
    )


def _scope(tree: Tree, mistakes: Mistakes, warnings: list[Warning], *, ideal: bool = False) -> Layout:
    """Return the layout of one machine, with names relative to it; ideal: whether a machine around it states `class: ideal`."""
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
            tree.key_place("parts"), "the machine has no parts", "add one, such as cpu: {kind: cpu, use: d2l-laptop-cpu}"
        )
    parts = tree.get("parts") or tree
    for name in sorted((key for key in file.parts if key not in ("source", "ref")), key=natural):
        if _NAME.fullmatch(name) is None:
            mistakes.add(
                parts.key_place(name),
                f"invalid name of a part '{name}'",
                "use at most 60 letters, digits, - and _, starting with a letter",
            )
        else:
            _part(layout, name, file.parts[name], parts, mistakes, warnings, ideal=ideal)
    if len(mistakes) == before:  # else links would only repeat the mistakes of their parts
        wire_all(layout, file.links, mistakes, warnings, ideal=ideal)
        _check_power(layout, file.name, file.supply, warnings)
    return layout


def _part(
    layout: Layout, name: str, tree: Tree, parts: Tree, mistakes: Mistakes, warnings: list[Warning], *, ideal: bool
) -> None:
    """Add a part to the layout, with all its members."""
    entry = _entry(tree, mistakes)
    if entry is None:
        return
    if entry.count is not None and name[-1].isdigit():
        text = f"the first of the parts '{name}' is called {name}0: use a name that does not end in a digit"
        warnings.append(Warning("name-ends-in-digit", text, parts.key_place(name)))
    if entry.kind == "machine" and tree.get("let") is not None and entry.use is None:
        hint = "move them to `let:` at the top level, or move the machine to a file of its own"
        mistakes.add(tree.key_place("let"), f"`let` is not supported for machine '{name}', which is defined in this file", hint)
    child = _scope(tree, mistakes, warnings, ideal=ideal) if entry.kind == "machine" else None
    model = None if child is not None else _known_model(name, entry.kind, tree, parts, mistakes, warnings, ideal=ideal)
    if child is None and model is None:
        return
    count = 1 if entry.count is None else entry.count
    if layout.size + count * (child.size if child is not None else 1) > MAX_DEVICES:
        mistakes.add(tree.key_place("count"), f"more than {MAX_DEVICES} devices")
        return
    names = (name,) if entry.count is None else NumberedNames(name, count)
    part = LayoutPart(name, names, entry.count is not None, entry.kind, model, child, entry.fidelity, use=entry.use or "")
    if entry.price is not None and child is None:  # an inner machine has its own price
        part.price = _price(entry.price, mistakes)
    taken = layout.clash(part)
    if taken is not None:
        mistakes.add(parts.key_place(name), f"two parts are called {taken}")
        return
    power = child.power if child is not None else loaded_watts(getattr(model, "power", None)) or 0.0
    for _ in range(count if power else 0):
        layout.power += power
    layout.add(part)


def _entry(tree: Tree, mistakes: Mistakes) -> PartEntry | None:
    """Return the common keys of a part; add a mistake and return None for an unknown kind."""
    kind = tree.get("kind")
    kinds = [*devices.KINDS, "machine"]
    if kind is not None and isinstance(kind.value, str) and kind.value not in kinds:
        mistakes.add(kind.place, f"unknown kind of part '{kind.value}'", did_you_mean(kind.value, kinds))
        return None
    return decode(tree, PartEntry, mistakes, ignore=dict(tree.items()))


def _known_model(
    name: str, kind: str, tree: Tree, parts: Tree, mistakes: Mistakes, warnings: list[Warning], *, ideal: bool
) -> Device | None:
    """Return the model of a part; runs that share caches reuse the model of an equal part."""
    shared: dict[tuple[str, str, bool, Place], tuple[Tree, Device | None, list[Warning]]] | None = memo_table("parts")
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
    """Return a part with class defaults filled in; warn if its class was guessed."""
    tree = with_class_defaults(stated, kind, ideal=ideal)
    guess = class_of(stated, kind) if tree is not stated else None
    if guess is not None and guess.guessed:
        assumed = f"{guess.path} (guessed {guess.guessed})" if guess.path else "all GPUs, with wide errors"
        text = f"{name} states no `vendor` and `generation`: omitted numbers are defaults of {assumed}; `class: ideal` has none"
        warnings.append(Warning("class-guessed", text, place))
    if kind == "gpu" and tree is not stated and (text := misspelt(stated, kind)):
        warnings.append(Warning("class-guessed", f"{name}: {text}", place))
    return tree


def _model(kind: str, tree: Tree, mistakes: Mistakes) -> Device | None:
    check_class(tree, kind, mistakes)
    for key, node in ineffective_numbers(tree, kind):
        hint = f"state the peaks, such as flop: {{{next(iter(dict((tree.get('flop') or tree).items())), 'fp32')}: 20 TFLOP/s}}"
        mistakes.add(
            node.place, f"`{key}` has no effect: the used part states no `{key}` from which its peaks could be scaled", hint
        )
    model = decode(tree, devices.KINDS[kind], mistakes, ignore=PART_KEYS, sourced=True)
    if model is not None:
        object.__setattr__(model, "rated", rated_power(tree))  # no key of a file, hence no argument
        _check_dimms(model, tree, mistakes)
        _check_drawn(model.power, tree, mistakes)
    return model


def _price(tree: Tree, mistakes: Mistakes) -> Price:
    """Return the value of `price:`."""
    from hwsim.devices.offers import read_price  # imported late: few machines have a price

    return read_price(tree, mistakes)


def _check_drawn(power: float | PowerCurve | None, tree: Tree, mistakes: Mistakes) -> None:
    """Add mistakes for contradictions within `power:`."""
    for key, message, hint in power.problems() if isinstance(power, PowerCurve) else ():
        mistakes.add((tree.get("power") or tree).key_place(key), message, hint)


def _own_name(tree: Tree) -> str:
    """Return the name of a machine of the library; "" for other files."""
    path, machines = Path(tree.place.file), folder("machine")
    return path.relative_to(machines).with_suffix("").as_posix() if machines in path.parents else ""


def _check_dimms(model: Device, tree: Tree, mistakes: Mistakes) -> None:
    """Add a mistake if there are more memory modules than slots."""
    slots, memory = getattr(model, "dimm_slots", None), getattr(model, "memory", None)
    dimms = getattr(memory, "dimms", None)
    if slots is not None and dimms is not None and dimms > slots:
        place = (tree.get("memory") or tree).key_place("dimms")
        mistakes.add(place, f"{dimms} DIMMs, but there are {slots} slots", "use fewer, larger DIMMs, or another CPU")


def _check_power(layout: Layout, name: str, supply: float | None, warnings: list[Warning]) -> None:
    """Warn if the maximum power of the parts (`layout.power`) exceeds the power supply."""
    if supply is not None and layout.power > supply:
        drawn, given = format_quantity(layout.power, "W"), format_quantity(supply, "W")
        where = f"machine '{name}'" if name else "the machine"
        text = f"{where}: its parts draw up to {drawn}, but its power supply delivers {given}"
        warnings.append(Warning("power-over-budget", text))
