from __future__ import annotations

from pathlib import Path

import pytest

from hwsim.studies.curves import curves, numbers
from hwsim.studies.point import Outcome
from hwsim.studies.table import Sweep
from hwsim.views.sweep.curves import Curves, StudyCurve
from hwsim.views.sweep.draw import render


def found(vary: dict[str, list[object]], seconds: list[float | None]) -> Sweep:
    from hwsim.studies.grid import grid

    points = grid(vary)
    rows = tuple(Outcome(time, "x", 1.0).at(values) for values, time in zip(points, seconds, strict=True))
    return Sweep("m", "w", (), tuple(zip(points.paths, points.values, strict=True)), len(points), rows)


def text(shown: Curves) -> str:
    return b"".join(render(shown, ".svg")).decode()


def test_the_first_path_that_takes_numbers_is_across() -> None:
    shown = curves(found({"kind": ["a", "b"], "speed": ["1 GB/s", "2 GB/s"], "n": [1, 2]}, [1, 2, 3, 4, 5, None, 7, 8]))
    assert (shown.across, shown.unit, shown.numbers, shown.legend) == ("speed", "B/s", (1e9, 2e9), "kind, n")
    assert shown.lines == (
        StudyCurve("a, 1", (1, 3)), StudyCurve("a, 2", (2, 4)), StudyCurve("b, 1", (5, 7)), StudyCurve("b, 2", (None, 8))
    )  # fmt: skip


def test_names_are_bars() -> None:
    shown = curves(found({"machine.gpu.use": ["x", "y"], "b": [True, False]}, [1, 2, 3, None]))
    assert (shown.across, shown.numbers, shown.names) == ("gpu type", (), ("x", "y"))
    assert all(f">{label}<" in text(shown) for label in ("x", "y", "true", "false", "gpu type", "time (s)"))


@pytest.mark.parametrize("values", [["x", 1], [True, 2], [None], ["1 s", "1 B"], ["1 s", 2]])
def test_what_cannot_be_compared_is_no_axis_of_numbers(values: list[object]) -> None:
    assert numbers(values) == ()


def test_axes_say_their_units() -> None:
    narrow = text(curves(found({"link.bandwidth": ["4 GB/s", "8 GB/s"]}, [0.015, 0.010])))
    assert ">link bandwidth (GB/s)<" in narrow
    assert ">time (ms)<" in narrow
    wide = text(curves(found({"bytes": ["1 kB", "1 MB", "1 GB"]}, [1e-6, 1e-3, 1.0])))
    assert all(f">{label}<" in wide for label in ("1 kB", "1 GB", "bytes, logarithmic", "time, logarithmic", "1 ms"))


def test_the_legend_is_capped() -> None:
    shown = text(curves(found({"n": [1, 2], "m": list(range(100, 130))}, [1.0] * 60)))
    assert ">111<" in shown
    assert ">112<" not in shown
    assert ">18 others<" in shown


@pytest.mark.parametrize("suffix", [".png", ".svg", ".pdf"])
def test_the_same_curves_are_the_same_bytes(suffix: str) -> None:
    shown = curves(found({"n": [1, 2, 4, 8, 200], "m": [1, 2]}, [1.0, 2, 3, None, 5, 0, 7, 8, 9, 10]))
    assert list(render(shown, suffix)) == list(render(shown, suffix))


@pytest.mark.parametrize("seconds", [[0.0, 0.0], [None, 1.0], [1e-15, 1e5]])
def test_any_times_can_be_drawn(seconds: list[float | None], tmp_path: Path) -> None:
    for values in ([1, 2], ["0 s", "5 s"], ["a", "b"], [-1, 1000], [1e-9, 1e9]):
        assert found({"v": list(values)}, seconds).plot(tmp_path / "a.png").stat().st_size > 1000


def test_another_suffix_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"\.png, \.svg or \.pdf"):
        found({"v": [1]}, [1.0]).plot(tmp_path / "a.gif")
    assert list(tmp_path.iterdir()) == []
