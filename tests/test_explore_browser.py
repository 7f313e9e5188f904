"""The explorer as a reader uses it: `hwsim explore` in a Chromium, by hand and by keyboard; no page complains of anything."""

from __future__ import annotations

import re
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

SLOT = "machine.links.slot.bandwidth"
COLOURS = "Array.from(document.querySelectorAll('#families li'), one => one.textContent + one.firstChild.style.background).join()"
EVERYTHING = """[document.title, document.querySelector('header').innerText,
  document.querySelector('main').innerText.replace(/open another.*/gs, ''),
  ...Array.from(document.querySelectorAll('[aria-label], [title], [aria-valuetext]'), one => one.ariaLabel + one.title)].join()"""
READY = "document.body.dataset.ready === 'yes'"


def started() -> tuple[subprocess.Popen[str], str]:
    """A server of its own, and the address that it printed."""
    pytest.importorskip("starlette", reason="starlette is not installed")
    pytest.importorskip("uvicorn", reason="uvicorn is not installed")
    command = [sys.executable, "-X", "utf8", "-m", "hwsim", "explore", "d2l-gpu-workstation", "d2l/copy-overlap", "--no-open"]
    server = subprocess.Popen(command, stdout=subprocess.PIPE, encoding="utf-8")
    assert server.stdout is not None
    return server, server.stdout.readline().strip()


def stopped(server: subprocess.Popen[str]) -> None:
    server.terminate()
    server.wait(20)
    assert server.stdout is not None
    server.stdout.close()


@pytest.fixture(scope="module")
def address(browser: Any) -> Iterator[str]:
    server, printed = started()
    yield printed
    stopped(server)


class Reader:
    """A page in a browser, and everything that it complained of."""

    def __init__(self, browser: Any, address: str, *, width: int = 1280, scheme: str = "light") -> None:
        self.page = browser.new_page(viewport={"width": width, "height": 860}, color_scheme=scheme, accept_downloads=True)
        self.said: list[str] = []
        self.page.on("console", lambda message: self.said.append(message.text) if message.type == "error" else None)
        self.page.on("pageerror", lambda error: self.said.append(str(error)))
        self.asked: list[str] = []
        self.page.on("request", lambda request: self.asked.append(request.url))
        self.page.goto(address)
        self.until(READY)

    def until(self, what: str, seconds: float = 30.0) -> None:
        """Poll: Playwright's own waiting evaluates a text, which the page's policy forbids."""
        end = time.monotonic() + seconds
        while not self.page.evaluate(what):
            assert time.monotonic() < end, f"{what} never came; {self.said}"
            self.page.wait_for_timeout(20)

    def count(self, what: str) -> int:
        return int(self.page.evaluate(f"Number(document.body.dataset.{what} || 0)"))

    def rests(self) -> None:
        """Wait until sentences and curve of the last run have come."""
        before = self.count("rests")
        self.until(f"Number(document.body.dataset.rests || 0) > {before} && !document.querySelector('.old')")

    def time(self) -> str:
        return str(self.page.inner_text("#time"))

    def slider(self, path: str) -> Any:
        return self.page.locator(f"[id='s-{path}']")

    def pressed(self, *keys: str) -> None:
        for key in keys:
            self.page.keyboard.press(key)

    def saved(self, button: str, path: Path) -> Path:
        """What a button of the menu hands out."""
        if not self.page.locator(f"#{button}").is_visible():
            self.page.locator("summary", has_text="Share").click()
        with self.page.expect_download() as waited:
            self.page.locator(f"#{button}").click()
        waited.value.save_as(path)
        return path

    def ends(self) -> None:
        assert self.said == []
        self.page.close()


def test_the_answer_moves_with_the_hand_and_comes_back(browser: Any, address: str) -> None:
    """A drag, colours that stay, a pin, the reset of a slider, and what was undone."""
    reader = Reader(browser, address)
    page = reader.page
    assert reader.time() == "175 ms"
    before = page.evaluate(COLOURS)
    page.locator("#pin").click()
    slot = reader.slider(SLOT)
    box = slot.bounding_box()
    page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    page.mouse.down()
    for step in range(1, 9):
        page.mouse.move(box["x"] + box["width"] * (0.5 - 0.05 * step), box["y"] + box["height"] / 2)
        page.wait_for_timeout(10)
    page.mouse.up()
    reader.rests()
    assert slot.get_attribute("aria-valuetext") == page.inner_text(f"output[for='s-{SLOT}']")
    took = re.fullmatch(r"(\d+) ms", reader.time())
    assert took is not None
    assert int(took[1]) > 300, "ten copies at a fifth of the rate"
    assert page.evaluate(COLOURS) == before, "an op keeps its colour"
    assert "as slow" in page.inner_text("#difference")
    assert "slot:gpu->cpu" in page.inner_text("#difference")
    page.locator("#undo").click()
    reader.rests()
    assert (reader.time(), slot.get_attribute("aria-valuetext")) == ("175 ms", "1.665 GB/s")
    assert "as fast" in page.inner_text("#difference")
    reader.ends()


def test_the_keyboard_alone_is_enough(browser: Any, address: str) -> None:
    """Sliders by arrows, the path op by op with reasons and derivations, the table, the theme, a prediction by keys."""
    reader = Reader(browser, address)
    page = reader.page
    reader.slider(SLOT).focus()
    reader.pressed("ArrowLeft", "ArrowLeft", "Delete")
    page.locator("#timeline").focus()
    reader.pressed("End")
    reader.until("document.querySelectorAll('#why li').length > 0")
    assert "y to CPU on gpu.d2h" in page.inner_text("#step")
    assert "It starts when y on gpu has ended" in page.inner_text("#step")
    assert "16 MB / 1.665 GB/s" in page.inner_text("#why")
    reader.pressed("Home", "ArrowRight")
    assert page.inner_text("#step").startswith("2 of 12")
    page.locator("#spans summary").focus()
    reader.pressed("Enter")
    reader.until("document.querySelectorAll('#spans-table tbody tr').length === 20")
    order = ["predict", "pin", "undo"]
    page.locator("#predict").focus()
    for expected in order[1:]:
        reader.pressed("Tab")
        assert page.evaluate("document.activeElement.id") == expected
    page.locator("#theme").focus()
    reader.pressed("Enter")
    assert page.evaluate("document.documentElement.dataset.theme") == "dark"
    reader.ends()


def test_a_mistake_is_marked_where_it_stands_and_goes_with_it(browser: Any, address: str) -> None:
    reader = Reader(browser, address)
    page = reader.page
    page.locator(".file:not([hidden]) .cm-content").click()
    reader.pressed("Control+End")
    page.keyboard.type("parts2: 1")
    reader.until("document.querySelectorAll('#mistakes li').length === 1")
    assert page.inner_text("#mistakes").splitlines() == [
        "machine, line 15: unknown key 'parts2' in machine file",
        "did you mean 'parts'?",
    ]
    assert page.inner_text(".cm-lintRange-error") == "parts2"
    assert page.evaluate("document.body.classList.contains('stale')"), "the answer is of the file before"
    reader.pressed(*["Backspace"] * 9)
    reader.until("!document.querySelector('#mistakes li') && !document.body.classList.contains('stale')")
    page.keyboard.type("supp")
    reader.until("document.querySelector('.cm-completionLabel')?.textContent === 'supply'")
    reader.ends()


def test_a_prediction_sees_nothing_of_the_answer(browser: Any, address: str) -> None:
    reader = Reader(browser, address)
    page = reader.page
    reader.rests()
    page.locator("#predict").click()
    page.keyboard.type("350 ms")
    page.locator("#tab-workload").click()
    said = page.evaluate(EVERYTHING)
    assert not re.search(r"17[0-9]|16[56]\b|95 %|5\.5 %|busy,|expect: ", said), (
        "neither times nor shares, nor what the file expects"
    )
    reader.slider(SLOT).focus()
    answers = reader.count("answers")
    reader.pressed("ArrowLeft")
    reader.until(f"Number(document.body.dataset.answers) > {answers}")
    assert reader.time() == "?"
    area = page.locator("#curve").bounding_box()
    page.mouse.move(area["x"] + 62, area["y"] + 50)
    page.mouse.down()
    for step in range(12):
        page.mouse.move(area["x"] + 62 + (area["width"] - 80) * step / 11, area["y"] + 50 + 8 * step)
    page.mouse.up()
    page.reload()
    reader.until(READY)
    assert (reader.time(), page.input_value("#guess")) == ("?", "350 ms"), "the address keeps the guess"
    reader.rests()
    page.locator("#reveal").click()
    assert re.search(r"Your time: 350 ms, (\d+ %|[\d.]+ times) too long", page.inner_text("#verdict"))
    assert "Your curve is off by up to" in page.inner_text("#verdict")
    assert reader.time().endswith(" ms")
    reader.ends()


@pytest.mark.slow
def test_a_service_shows_the_time_of_its_answers(browser: Any, address: str) -> None:
    """Files from the library; the time of an answer takes the place of the run's, which arrivals set, on the curve, too."""
    reader = Reader(browser, address)
    page = reader.page
    page.locator("#open-machine").select_option("web-server")
    page.locator("#open-workload").select_option("services/object-store")
    reader.until("document.getElementById('interval').textContent.endsWith('time of an answer (p99)')")
    assert reader.time().endswith((" ms", " s"))
    assert page.title().startswith(reader.time())
    name = page.inner_text("#interval")
    reader.until(f"document.getElementById('curve-title').textContent.toLowerCase().startsWith('{name} over ')")
    assert page.get_attribute("#curve", "aria-label").lower().startswith(f"{name} over ")
    assert not page.locator("#steps").is_visible(), "no op to step to"
    page.locator("#pin").click()
    assert page.inner_text("#difference").startswith(f"Pinned: {reader.time()} ")
    page.locator("#predict").click()
    assert page.inner_text("#guess-asks").startswith(f"What will be the {name}?")
    assert reader.time() == "?"
    page.locator("#guess").fill("1 h")
    page.locator("#reveal").click()
    assert "times too long" in page.inner_text("#verdict")
    reader.ends()


@pytest.mark.slow
def test_pictures_files_and_a_page_without_a_server(browser: Any, address: str, tmp_path: Path) -> None:
    """SVG, PNG and the saved page, which answers a moved slider as the server did, and asks nobody."""
    reader = Reader(browser, address)
    page = reader.page
    times = reader.page.locator("#sliders input[type=range]").nth(1)
    times.focus()
    answers = reader.count("answers")
    reader.pressed("ArrowRight")
    reader.until(f"Number(document.body.dataset.answers) > {answers}")
    moved, said = reader.time(), page.inner_text("#settings")
    reader.pressed("Delete")
    reader.rests()
    svg = reader.saved("svg", tmp_path / "run.svg").read_text("utf-8")
    assert svg.startswith("<svg ")
    assert "175 ms (9 of 10 such runs" in svg
    assert reader.saved("png", tmp_path / "run.png").read_bytes()[:4] == b"\x89PNG"
    page.locator("summary", has_text="Share").click()
    page.locator("#html").click()
    path = times.get_attribute("id")[2:]
    for at, value in enumerate([path, "", ""]):
        page.locator("#axes select").nth(at).select_option(value)
    reader.saved("compute", tmp_path / "run.html")
    reader.ends()
    saved = Reader(browser, (tmp_path / "run.html").as_uri())
    assert saved.time() == "175 ms"
    slider = saved.slider(path)
    slider.focus()
    while said not in saved.page.inner_text("#settings"):
        answers = saved.count("answers")
        saved.pressed("ArrowRight")
        saved.until(f"Number(document.body.dataset.answers) > {answers}", 3)
    assert saved.time() == moved
    assert saved.page.locator("#families li").count() == 2, "its timeline, too"
    saved.ends()
    assert {each.partition(":")[0] for each in saved.asked} <= {"file", "data"}, "it asks nobody"


@pytest.mark.slow
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_narrow_window_has_one_column_and_no_way_sideways(browser: Any, address: str, scheme: str) -> None:
    reader = Reader(browser, address, width=360, scheme=scheme)
    page = reader.page
    reader.rests()
    assert page.evaluate("document.documentElement.scrollWidth") == 360
    assert page.evaluate("document.documentElement.dataset.theme") == scheme
    tops = [
        page.locator(name).bounding_box()["y"] for name in ("#time", "#sliders", "#curve", "#timeline", "#machine", "#editor")
    ]
    assert tops == sorted(tops), "the sliders come right after the answer"
    page.locator("summary", has_text="Share").click()
    box = page.locator("#html").bounding_box()
    assert box["x"] >= 0
    assert box["x"] + box["width"] <= 360
    reader.ends()


@pytest.mark.slow
def test_a_reload_and_a_new_server_bring_everything_back(browser: Any) -> None:
    server, printed = started()
    reader = Reader(browser, printed)
    page = reader.page
    page.locator("#pin").click()
    reader.slider(SLOT).focus()
    reader.pressed(*["ArrowLeft"] * 9)
    reader.rests()
    seen = reader.time(), page.inner_text("#settings"), page.inner_text("#difference")
    page.reload()
    reader.until(READY)
    assert (reader.time(), page.inner_text("#settings"), page.inner_text("#difference")) == seen
    fragment = page.evaluate("location.hash")
    assert fragment.startswith("#1.")
    assert reader.said == []
    stopped(server)
    page.locator("#undo").focus()
    reader.slider(SLOT).focus()
    reader.pressed("ArrowLeft")
    reader.until("!document.getElementById('notice').hidden")
    assert page.input_value("#notice textarea").startswith("#1.")
    page.close()
    server, printed = started()
    again = Reader(browser, printed + fragment)
    assert (again.time(), again.page.inner_text("#settings"), again.page.inner_text("#difference")) == seen
    again.ends()
    stopped(server)
