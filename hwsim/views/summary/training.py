"""The steps of a training in text and as a dict."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from typing import Any

from hwsim.results.training import MAIN, Training
from hwsim.units import format_quantity, format_share
from hwsim.views.explain.cause import family
from hwsim.views.summary.capacities import group


def lines(found: Training) -> Iterator[tuple[str, str]]:
    """(title, text) of each line; of a job, behind its name."""
    of = "" if found.name == MAIN else f"{found.name}: "
    yield from ((title, f"{of}{text}") for title, text in _lines(found))


def _lines(found: Training) -> Iterator[tuple[str, str]]:
    told = f"; one of {found.replicas:,} alike copies is simulated" if found.replicas > 1 else ""
    yield "plan", found.plan + told
    unit = found.unit
    step = f"{format_quantity(found.step_s, 's')} for {count(found.count)} {unit}"
    yield "step", step + (f"; the first {format_quantity(found.first_s, 's')}" if found.settles else "")
    each = f"{count(found.rate / found.gpus)} on each of {found.gpus:,}" if found.gpus > 1 else ""
    yield "throughput", ", ".join([f"{count(found.rate)} {unit}/s", *([each] if each else []), f"MFU {format_share(found.mfu)}"])
    parts = (("computing", found.computing), ("exposed communication", found.exposed), ("bubble", found.bubble))
    yield "devices", ", ".join(f"{name} {format_share(part)}" for name, part in parts if part > 0)
    if found.paces:
        yield "slowest", _kinds(found)
    if found.whole > 0:
        yield "training", f"{count(found.whole)} {unit} take {found.days:,.4g} days if every step is as the last"


def _kinds(found: Training) -> str:
    """Which kind of GPU sets the pace, and how long the others wait."""
    families = {family(name) for pace in found.paces for name in pace.devices}
    apart = len(families) >= len(found.paces)
    names = [group(each.devices, whole=apart and len(set(map(family, each.devices))) == 1) for each in found.paces]
    slowest = found.paces[0]
    waits = [
        f"{name} {format_quantity(slowest.computing_s - each.computing_s, 's')}"
        for name, each in zip(names[1:], found.paces[1:], strict=True)
    ]
    return f"{names[0]}: {format_quantity(slowest.computing_s, 's')} of kernels a step; waiting for it: {', '.join(waits)}"


def as_dict(found: Training) -> dict[str, Any]:
    """Keys end in their unit."""
    return {
        "name": found.name,
        "plan": found.plan,
        "devices": found.gpus,
        "steps": found.steps,
        "step_s": found.step_s,
        "first_step_s": found.first_s,
        f"{found.unit}_per_step": found.count,
        f"{found.unit}_per_s": found.rate,
        "mfu": found.mfu,
        "computing": found.computing,
        "exposed": found.exposed,
        "bubble": found.bubble,
        "stages": [asdict(each) for each in found.stages],
        "days": found.days if found.whole > 0 else None,
        **({"kinds": _paces(found)} if found.paces else {}),
    }


def _paces(found: Training) -> list[dict[str, Any]]:
    most = max(each.computing_s for each in found.paces)
    return [
        {"devices": list(each.devices), "computing_s": each.computing_s, "waits_s": most - each.computing_s}
        for each in found.paces
    ]


def count(value: float) -> str:
    """A number of things, with a prefix.

    >>> count(116_000), count(906), count(15e12)
    ('116 k', '906', '15 T')
    """
    for size, prefix in ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k")):
        if value >= 0.9995 * size:
            return f"{value / size:.3g} {prefix}"
    return f"{value:.3g}"
