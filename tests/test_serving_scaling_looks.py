"""Looks of an autoscaler that would change nothing are skipped: everything is as look by look."""

from __future__ import annotations

from typing import Any, cast

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hwsim.families.serving.actors.router import Least
from hwsim.families.serving.actors.run import Sequence
from hwsim.families.serving.actors.scaled import Scaled
from hwsim.families.serving.workload.scaling import Scale
from hwsim.families.serving.workload.settings import ANY
from tests.test_serving_ways import only, served


class Plain:
    """A copy of which a router sees the number of its requests."""

    def __init__(self) -> None:
        self.requests = 0

    def forgets(self) -> None:
        assert not self.requests


class LookByLook(Scaled):
    """An autoscaler that skips no look."""

    __slots__ = ()

    @property
    def is_settled(self) -> bool:
        return False


def scales() -> st.SearchStrategy[Scale]:
    return st.builds(
        Scale,
        least=st.integers(0, 2),
        most=st.just(4),
        first=st.just(2),
        target=st.sampled_from([0.5, 1.0, 3.0]),
        by=st.sampled_from(["requests", "waiting", "arrivals"]),
        limit=st.sampled_from([1, 3, ANY]),
        start=st.integers(0, 60),
        every=st.integers(1, 9),
        looks=st.integers(1, 6),
        panic=st.integers(0, 3),
        delay=st.integers(0, 90),
        disk=st.sampled_from(["", "disk0"]),
    )


def told(kind: type[Scaled], scale: Scale, steps: list[tuple[int, int]]) -> Any:
    """All that an autoscaler does and says: requests come, begin and end, and weights are read, as `steps` have it."""
    copies = [Plain() for _ in range(4)]
    scaled = kind(scale, Least(), cast(Any, copies), 3)
    now, number = 3, 0
    under_way: list[int] = []
    waits: list[int] = []
    notes: list[Any] = []
    for wait, what in steps:
        now += wait

        def stands(copy: int, request: int) -> None:
            copies[copy].requests += 1
            under_way.append(copy)
            waits.append(request)

        if what == 0:
            number += 1
            copy = scaled.asks(Sequence(number, 10, 10, now), now)
            if copy >= 0:
                stands(copy, number)
            notes.append((now, copy))
        elif what == 1 and under_way:
            copy = under_way.pop(0)
            copies[copy].requests -= 1
            scaled.ended(copy, now)
        elif what == 2 and waits:
            waits.pop(0)
            scaled.begins(now)
        elif what == 3 and scaled.begun:
            scaled.loaded(scaled.begun.pop(0), now)
        while (free := scaled.released(now, 0)) is not None:
            sequence, copy, since, late = free
            stands(copy, sequence.number)
            notes.append((now, copy, since, *late))
        scaled.until(now)
        notes.append((scaled.next(now) > now, scaled.first(now), list(scaled.ready), list(scaled.since)))
    return notes, [life.seconds(now) for life in scaled.lives], scaled.statistics(1, now), scaled._look, scaled._area


@settings(max_examples=300, deadline=None)
@given(scales(), st.lists(st.tuples(st.one_of(st.integers(0, 20), st.integers(0, 2000)), st.integers(0, 3)), max_size=40))
def test_the_same_as_look_by_look(scale: Scale, steps: list[tuple[int, int]]) -> None:
    assert told(Scaled, scale, steps) == told(LookByLook, scale, steps)


@pytest.mark.parametrize("way", ["auto", "clock"])
@pytest.mark.parametrize("start", ["40 s", {"disk": "disk0", "engine": "40 s"}])
def test_days_have_few_looks(way: str, start: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    looks = 0
    before = Scaled._looks

    def counted(self: Scaled, at: int) -> None:
        nonlocal looks
        looks += 1
        before(self, at)

    monkeypatch.setattr(Scaled, "_looks", counted)
    keys: dict[str, Any] = {"device": "gpu0..1", "arrivals": {"every": "4 h"}, "requests": 12, "output": 9}
    rules = {"least": 0, "most": 2, "target": 8, "start": start, "window": "60 s"}
    found = only(served(way, **keys, scale=rules))
    assert found.scaling is not None
    assert found.scaling.starts == 12
    assert found.span_s > 40 * 3600
    skipped = looks
    assert skipped < 12 * 120
    monkeypatch.setattr(Scaled, "is_settled", property(lambda self: False))
    assert only(served(way, **keys, scale=rules)) == found
    assert looks - skipped > 50 * skipped
