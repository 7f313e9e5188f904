"""How much each slider moves the answer, with its value about doubled and about halved, and which values are refused.

A slider that moves the answer by less than `LEAST` has a reason why it does not matter here.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Final

from hwsim.api import Run
from hwsim.explorer.answer import instead
from hwsim.explorer.curves import Runs, try_run
from hwsim.explorer.sliders import Slider
from hwsim.formats import family, format_share
from hwsim.records import dataclass
from hwsim.results.activities import bounds_of

LEAST: Final = 0.01  # relative change of the answer from which a slider matters
BUDGET: Final = 0.5  # s of computing per answer
PATIENCE: Final = 1.0  # s of CPU for the values of a slider of which some may be refused


@dataclass(frozen=True, slots=True)
class Effect:
    """The effect of a slider on the answer.

    Args:
        path: path of the slider.
        size: largest relative change of the answer; None: all values tried are refused.
        reason: why the slider does not matter; "" if it does.
        legal: indices of the values that are not known to be refused.
    """

    path: str
    size: float | None
    reason: str
    legal: tuple[int, ...]


def effects(runs: Runs, settings: Mapping[str, str], sliders: Sequence[Slider], *, budget: float = BUDGET) -> tuple[Effect, ...]:
    """Return the effects of sliders, in their order, as many as fit into the budget (s), but at least one."""
    base, _ = try_run(runs, settings)
    if base is None:
        return ()
    found = list[Effect]()
    until = time.monotonic() + budget
    for slider in sliders:
        if found and time.monotonic() > until:
            break
        found.append(_effect(runs, settings, slider, base))
    return tuple(found)


def shown_first(sliders: Sequence[Slider], found: Sequence[Effect]) -> tuple[Slider, ...]:
    """Return the sliders that move the answer, the strongest first, with the values that are not refused."""
    by_path = {effect.path: effect for effect in found}
    strong = [slider for slider in sliders if slider.path in by_path and (by_path[slider.path].size or 0.0) > LEAST]
    return tuple(sorted(strong, key=lambda slider: -(by_path[slider.path].size or 0.0)))


def allowed(slider: Slider, legal: Sequence[int]) -> Slider:
    """Return a slider with some of its values, among them the file's own."""
    kept = [place for place in range(len(slider.values)) if place in set(legal) | {slider.at}]
    values, numbers = tuple(slider.values[place] for place in kept), tuple(slider.numbers[place] for place in kept)
    return replace(slider, values=values, numbers=numbers, at=kept.index(slider.at))


def _effect(runs: Runs, settings: Mapping[str, str], slider: Slider, base: Run) -> Effect:
    own = slider.values.index(settings[slider.path]) if settings.get(slider.path) in slider.values else slider.at
    answers, refused, message = list[float](), set[int](), ""
    near = list(dict.fromkeys(_near(slider, own)))
    others = [place for place in range(len(slider.values)) if place != own and place not in near]
    until = time.process_time() + PATIENCE
    for place in [*near, *others]:
        is_near = place in near
        if not is_near and slider.kind != "count" and not refused:
            break  # a quantity whose double and half are possible
        if not is_near and time.process_time() > until:
            refused.add(place)  # a value that was not tried is not offered
            continue
        run, mistake = try_run(runs, {**settings, slider.path: slider.values[place]})
        if run is None:
            refused.add(place)
            message = message or mistake
        elif (is_near or not answers) and (change := _change(base, run)) is not None:
            answers.append(change)  # of another value only if those near the double and the half are refused
    if not answers:  # a value that was not tried is not offered where all those tried are refused
        refused = {place for place in range(len(slider.values)) if place != own}
    legal = tuple(place for place in range(len(slider.values)) if place not in refused)
    size = max(answers) if answers else None
    return Effect(slider.path, size, "" if size is not None and size > LEAST else _reason(slider, base, size, message), legal)


def _near(slider: Slider, own: int) -> Iterator[int]:
    """Yield the indices of the values about twice and half of the set one."""
    others = [place for place in range(len(slider.values)) if place != own]
    for wanted in (2 * slider.numbers[own], slider.numbers[own] / 2) if others else ():
        yield min(others, key=lambda place: abs(slider.numbers[place] - wanted))


def _change(base: Run, run: Run) -> float | None:
    before, after = answer_of(base), answer_of(run)
    if before is None or after is None:
        return None if before == after else 1.0  # one of both has no steady state
    return abs(after / before - 1.0) if before else float(after != before)


def answer_of(run: Run) -> float | None:
    """Return the number that the page shows in large: the measure of a workload family, or the time (s)."""
    measure = instead(run, "measure")
    if measure is None:
        return run.makespan_s
    value: float | None = measure["value"]
    return value


def _reason(slider: Slider, base: Run, size: float | None, message: str) -> str:
    if size is None:
        return f"other values are refused: {message}" if message else "there is no other value"
    if message and size == 0.0:
        return f"no allowed value changes the run; others are refused: {message}"
    little = "does not change the run" if size == 0.0 else f"changes the answer by {format_share(size)}"
    if slider.group not in ("machine", "parts") or base.only_requests:
        return f"twice or half of it {little}"
    words = set(slider.path.split(".")[1:])
    used = [use for use in base.usage if {family(use.device).strip("*"), use.device, use.capacity.partition(" ")[0]} & words]
    share = max((use.utilization for use in used), default=0.0)
    if size != 0.0:
        return f"twice or half of it {little}"
    if not any(use.busy_fs for use in used):
        return "nothing uses it in this run"
    makespan = base.timeline.makespan_fs or 1
    parts = bounds_of(base.timeline, base.devices)
    path = sum(part.time_fs for part in parts if words & set(part.bound.where.replace("*", "").replace(".", " ").split()))
    if not path:
        return f"{format_share(min(share, 1.0))} utilized, always in parallel with longer work"
    return f"{format_share(path / makespan)} of the critical path is there, bound by another of its numbers"
