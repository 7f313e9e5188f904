"""Sliders of the explorer: those shown first move the answer, the others say why not, and refused values are not offered."""

from __future__ import annotations

from typing import Any, Final

import pytest

import hwsim
from hwsim.explorer.effects import LEAST, answer_of, effects, shown_first
from hwsim.explorer.sliders import Slider, sliders
from hwsim.spec import find, names, read
from hwsim.studies.session import Session

SECONDS: Final = 30.0  # of computing, for all sliders of a pair
SAMPLE: Final = frozenset(
    {"d2l/copy-overlap", "d2l/two-nvlink-rings", "d2l/ssd-queue-depth", "d2l/async-loop", "services/object-store"}
)
LONG: Final = 0.3  # s of a run: of longer ones the values shown first are not all tried


def pairs() -> list[Any]:
    """Machine and workload of each workload of the library that expects a machine; all but a sample are slow."""
    found = []
    for name in names("workload"):
        expect = read(find("workload", name)).get("expect")
        machine = expect.text("machine") if expect is not None else None
        if machine is not None:
            marks = () if name in SAMPLE else (pytest.mark.slow,)
            found.append(pytest.param(str(machine), name, id=name, marks=marks))
    return found


def session_of(machine: str, workload: str) -> tuple[Session, tuple[Slider, ...]]:
    """A session, and the sliders of both files."""
    session = Session(machine, workload)
    with session.warm():
        return session, tuple(slider for slider in sliders(*session.files) if slider.group != "parts")


@pytest.mark.parametrize(("machine", "workload"), pairs())
def test_sliders_shown_first_move_the_answer_and_no_value_of_theirs_is_refused(machine: str, workload: str) -> None:
    session, all_sliders = session_of(machine, workload)
    found = effects(session.shown, {}, all_sliders, budget=SECONDS)
    first = shown_first(all_sliders, found)
    base = answer_of(session.shown({}))
    legal = {effect.path: effect.legal for effect in found}
    for slider in first:
        at = slider.numbers[slider.at]
        near = {
            min(
                (place for place in legal[slider.path] if place != slider.at),
                key=lambda place: abs(slider.numbers[place] - wanted),
            )
            for wanted in (2 * at, at / 2)
        }
        tried = near if slider.kind != "count" or all(effect.size is None for effect in found) else {*near, *legal[slider.path]}
        moved = [answer_of(session.shown({slider.path: slider.values[place]})) for place in sorted(tried)[:20]]
        assert any(value != base and (not base or not value or abs(value / base - 1) > LEAST) for value in moved), slider.path
    for effect in found:
        assert (effect.size or 0.0) > LEAST or effect.reason, effect.path
        assert effect.size is not None or len(effect.legal) == 1, "the file's own value is left"
    assert first or not all_sliders or all((effect.size or 0.0) <= LEAST for effect in found)


def test_a_slider_without_effect_says_why() -> None:
    session, all_sliders = session_of("d2l-gpu-workstation", "d2l/copy-overlap")
    reasons = {effect.path: effect.reason for effect in effects(session.shown, {}, all_sliders, budget=SECONDS)}
    assert reasons["machine.links.slot.bandwidth"] == ""
    assert reasons["machine.links.m2.gen"] == "nothing uses it in this run"
    assert "disk has 4 lanes" in reasons["machine.links.m2.lanes"]
    assert hwsim.simulate("d2l-gpu-workstation", "d2l/copy-overlap").makespan_s == pytest.approx(0.1753, rel=1e-3)
