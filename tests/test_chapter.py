"""The playable chapter: its numbers are those of docs/d2l.md, and its pieces hide their answers until they are predicted."""

from __future__ import annotations

import re
from html import unescape
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import hwsim
from hwsim.explorer.sliders import sliders
from hwsim.studies.session import Session
from tests.loading import script
from tests.test_docs import ROOT
from tests.test_explore_browser import Reader

PIECE = "const it = document.querySelector('[data-piece=split] iframe')?.contentDocument; "


@pytest.fixture(scope="module")
def chapter() -> ModuleType:
    return script("chapter")


@pytest.fixture(scope="module")
def short(chapter: ModuleType, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The chapter with one of its sections and one of its pieces."""
    with pytest.MonkeyPatch.context() as patch:
        title = "Automatic parallelism"
        patch.setattr(chapter, "SECTIONS", {title: chapter.SECTIONS[title], "Hardware": ("", ())})
        patch.setattr(chapter, "PIECES", {title: [piece for piece in chapter.PIECES[title] if piece.name == "split"]})
        file = tmp_path_factory.mktemp("chapter") / "chapter.html"
        file.write_text(chapter.chapter(), encoding="utf-8")
    return file


def test_every_section_has_a_piece_whose_sliders_exist(chapter: ModuleType) -> None:
    page = (ROOT / "docs" / "d2l.md").read_text(encoding="utf-8")
    assert list(chapter.SECTIONS) == re.findall(r"^## (.+)$", page, re.MULTILINE)
    assert set(chapter.PIECES) == {*chapter.SECTIONS, *chapter.EXTRA}
    pieces = [piece for several in chapter.PIECES.values() for piece in several]
    assert len({piece.name for piece in pieces}) == len(pieces)
    for piece in pieces:
        session = Session(piece.machine, piece.workload)
        with session.warm():
            known = {slider.path for slider in sliders(*session.files)}
        assert set(piece.sliders) <= known, piece.name
        assert piece.ask.endswith("?")


def test_numbers_of_the_page_are_those_of_the_chapter_s_table(short: Path) -> None:
    text, page = short.read_text(encoding="utf-8"), (ROOT / "docs" / "d2l.md").read_text(encoding="utf-8")
    section = page[page.index("## Automatic parallelism") : page.index("## Training on several GPUs")]
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in section.splitlines() if line.startswith("| ")][1:]
    shown = [unescape(article) for article in re.findall(r"<article>(.*?)</article>", text, re.DOTALL)]
    assert len(shown) == len(rows) >= 8
    for article, (what, book, simulated, _, between, kind, *_) in zip(shown, rows, strict=True):
        assert all(
            f">{cell}<" in article or f">{cell} <" in article for cell in (what, book, simulated, between, kind) if cell
        ), what
        assert "Derivation" in article
    assert "16 GFLOP / (244.2 GFLOP/s x 100 %) = <b>65.5 ms</b>" in text


def test_a_piece_is_predicted_and_revealed_and_a_class_is_collected(browser: Any, short: Path) -> None:
    """From a file, without a server; the address keeps what was predicted."""
    reader = Reader.__new__(Reader)
    reader.page, reader.said = browser.new_page(viewport={"width": 390, "height": 844}), []
    page = reader.page
    page.on("console", lambda message: reader.said.append(message.text) if message.type == "error" else None)
    page.on("pageerror", lambda error: reader.said.append(str(error)))
    page.goto(short.as_uri())
    page.locator("[data-piece=split]").scroll_into_view_if_needed()
    piece = page.frame_locator("[data-piece=split] iframe")
    reader.until(
        f"(() => {{ {PIECE} return it?.body?.dataset.ready && it.querySelectorAll('#guess-change option').length > 2 }})()"
    )
    assert not piece.locator("#time").is_visible(), "the answer is hidden"
    piece.locator("#guess").fill("262 ms")
    piece.locator("#guess-limit").select_option("GPU compute")
    piece.locator("#reveal").click()
    run = hwsim.simulate("d2l-gpu-workstation", "d2l/cpu-gpu-split")
    reader.until(f"(() => {{ {PIECE} return it.querySelector('#time').textContent === '{run.makespan_s * 1e3:.0f} ms' }})()")
    assert "Your limit: GPU compute, right" in piece.locator("#verdict").inner_text()
    reader.until("location.hash.startsWith('#split=1.')")
    address = page.evaluate("location.href")
    assert page.evaluate("document.documentElement.scrollWidth") == 390, "no way sideways on a phone"
    height = "document.querySelector('[data-piece=split] iframe').offsetHeight"
    reader.until(f"(() => {{ {PIECE} return Math.abs({height} - it.documentElement.offsetHeight) < 3 }})()")
    page.reload()
    page.locator("[data-piece=split]").scroll_into_view_if_needed()
    reader.until(f"(() => {{ {PIECE} return it?.querySelector('#verdict')?.textContent.includes('Your time: 262 ms') }})()")
    piece.locator("#class summary").click()
    piece.locator("#handed-in").fill(f"{address}\n{address}\nnothing")
    reader.until(f"(() => {{ {PIECE} return it.querySelector('#histogram img')?.alt === '2 times: 262 ms, 262 ms' }})()")
    assert reader.said == []
    page.close()


@pytest.mark.slow
def test_the_whole_chapter_is_written(chapter: ModuleType) -> None:
    text = chapter.chapter()
    assert text.count('class="piece"') == text.count("data-content=") >= 12
    assert text.count("<article>") == sum(len(rows) for _, rows in chapter.SECTIONS.values())
    assert len(text) < 3_000_000
