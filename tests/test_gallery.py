"""The gallery has every kind of figure and animation, and stays small."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from hwsim.views import FIGURES, SCENES, VIEWS
from tests.command import hwsim

PICTURE = re.compile(r"!\[[^\]]*\]\(([^)]+)\)")
COMMAND = re.compile(r"^hwsim (\w+) .* (\S+)$", re.MULTILINE)


@pytest.fixture
def page(root: Path) -> str:
    return (root / "docs" / "gallery.md").read_text("utf-8")


def test_every_kind_is_there(page: str) -> None:
    for kind in FIGURES:
        assert f"--plot {kind} " in page
    for scene in SCENES:
        assert f"--animate {scene} " in page
    drawing = {"simulate", "explain", "sweep", "compare", "sensitivity", "plan", "show", *VIEWS}
    assert {command for command, _ in COMMAND.findall(page)} == drawing


def test_an_interval_of_services_is_refused_in_words(tmp_path: Path) -> None:
    words = ["simulate", "web-server", "services/cache", "-q", "--plot", "interval", str(tmp_path / "a.svg")]
    assert "no single interval: the summary has one per service" in hwsim(*words, code=2).output
    assert not list(tmp_path.iterdir())


def test_every_picture_is_drawn_by_a_command_and_is_there(page: str, root: Path) -> None:
    drawn = {name for _, name in COMMAND.findall(page)}
    shown = {name for name in PICTURE.findall(page) if "/before/" not in name}
    assert shown <= drawn
    assert all("dark" in name for name in drawn - shown)
    for name in [*drawn, *PICTURE.findall(page)]:
        assert (root / "docs" / name).stat().st_size > 1000
    tutorial = {
        f"pictures/{name}"
        for name in re.findall(r"--plot (\S+)$", (root / "docs" / "tutorial.md").read_text("utf-8"), re.MULTILINE)
    }
    files = [path for folder in ("gallery", "pictures") for path in (root / "docs" / folder).rglob("*.*")]
    explorer = set(re.findall(r"pictures/explore[\w.]*\.png", (root / "docs" / "explore.md").read_text("utf-8")))
    assert {path.relative_to(root / "docs").as_posix() for path in files} == drawn | explorer | tutorial | set(
        PICTURE.findall(page)
    )
    assert sum(path.stat().st_size for path in files) < 1_500_000
