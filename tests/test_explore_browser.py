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

from hwsim.formats import format_quantity, format_share
from tests.present import present

SLOT = "machine.links.slot.bandwidth"
COLOURS = "Array.from(document.querySelectorAll('#families li'), one => one.textContent + one.firstChild.style.background).join()"
EVERYTHING = """[document.title, document.querySelector('header').innerText,
  document.querySelector('main').innerText.replace(/open another.*/gs, ''),
  ...Array.from(document.querySelectorAll('[aria-label], [title], [aria-valuetext]'), one => one.ariaLabel + one.title)].join()"""
READY = "document.body.dataset.ready === 'yes'"


class Server:
    """`hwsim explore`, which can be ended and started anew."""

    def start(self) -> str:
        """The address that it prints."""
        command = [sys.executable, "-X", "utf8", "-m", "hwsim", "explore", "d2l-gpu-workstation", "d2l/copy-overlap", "--no-open"]
        self._running = subprocess.Popen(command, stdout=subprocess.PIPE, encoding="utf-8")
        return present(self._running.stdout).readline().strip()

    def stop(self) -> None:
        self._running.terminate()
        self._running.wait(20)
        present(self._running.stdout).close()


@pytest.fixture(scope="module")
def server() -> Server:
    pytest.importorskip("starlette", reason="starlette is not installed")
    pytest.importorskip("uvicorn", reason="uvicorn is not installed")
    return Server()


@pytest.fixture(scope="module")
def address(browser: Any, server: Server) -> Iterator[str]:
    yield server.start()
    server.stop()


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

    def anew(self, address: str) -> Reader:
        """The page as it is opened, with nothing in its address."""
        assert self.said == []
        self.page.goto("about:blank")
        self.page.goto(address)
        self.until(READY)
        return self

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


def test_a_student_drags_steps_plays_mends_and_predicts(browser: Any, address: str) -> None:
    """One page for all that a class does with it: a page and a server take a second each to start."""
    reader = Reader(browser, address)
    drags(reader)
    steps_by_keys(reader.anew(address))
    plays(reader.anew(address))
    mends_a_mistake(reader.anew(address))
    predicts(reader.anew(address))
    reader.ends()


@pytest.mark.slow
def test_what_takes_longer(browser: Any, address: str, server: Server, tmp_path: Path) -> None:
    """Narrow windows, a service, pictures and the saved page, a new server: on one page, too."""
    reader = Reader(browser, address)
    has_one_column(reader)
    shows_a_service(reader.anew(address))
    saves_pictures_and_a_page(reader.anew(address), browser, tmp_path)
    goes_on_with_a_new_server(reader.anew(address), browser, server)


def drags(reader: Reader) -> None:
    """The answer moves with the hand: a drag, colours that stay, a pin, the reset of a slider, and what was undone."""
    page = reader.page
    says_numbers_as_the_command(page)
    assert reader.time() == "175 ms"
    reader.until("Number(document.body.dataset.rests) > 0")  # sliders stand where they stay, the strongest first
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
    took = present(re.fullmatch(r"(\d+) ms", reader.time()))
    assert int(took[1]) > 300, "ten copies at a fifth of the rate"
    assert page.evaluate(COLOURS) == before, "an op keeps its colour"
    assert "slower" in page.inner_text("#difference")
    assert "slot gpu->cpu" in page.inner_text("#difference")
    page.locator("#undo").click()
    reader.rests()
    assert (reader.time(), slot.get_attribute("aria-valuetext")) == ("175 ms", "1.665 GB/s")
    assert "equally fast" in page.inner_text("#difference")
    reader.until("document.querySelector('#sliders h3').textContent === 'Strongest effect first'")
    assert page.inner_text("#idle summary").endswith("not matter here")


def says_numbers_as_the_command(page: Any) -> None:
    """To the digit; only "us" and "day" are written as people do."""
    shares = [0.0, 1e-5, 0.00072, 0.05, 0.0123, 0.0549, 0.123, 0.5, 0.946, 0.9944, 0.9946, 0.99949, 0.999999, 1.0]
    times = [
        0.0,
        1.2345e-11,
        5e-9,
        9.9949e-7,
        9.9951e-4,
        0.00217,
        0.17534,
        0.99951,
        1.0,
        59.94,
        119.9,
        121.0,
        7199.0,
        9000.0,
        2e5,
        8e6,
    ]
    words = "async ([shares, times]) => { const words = await import('/page/words.js');"
    written = page.evaluate(
        words + "return [shares.map(words.percent), times.map(each => words.seconds(each))]; }", [shares, times]
    )
    assert written[0] == [format_share(share) for share in shares]
    assert written[1] == [re.sub("day$", "days", format_quantity(time_, "s").replace(" us", " µs")) for time_ in times]


def steps_by_keys(reader: Reader) -> None:
    """Sliders by arrows, the path op by op with reasons and derivations, the table, the theme, a prediction by keys."""
    page = reader.page
    reader.slider(SLOT).focus()
    reader.pressed("ArrowLeft", "ArrowLeft", "Delete")
    page.locator("#timeline").focus()
    reader.pressed("End")
    reader.until("document.querySelectorAll('#why li').length > 0")
    assert "copy to CPU on gpu.d2h" in page.inner_text("#step")
    assert "It starts when its predecessor matmul on gpu has ended" in page.inner_text("#step")
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


def mends_a_mistake(reader: Reader) -> None:
    """A mistake is marked where it stands, and goes with it."""
    page = reader.page
    page.locator(".file:not([hidden]) .cm-content").click()
    reader.pressed("Control+End")
    page.keyboard.type("parts2: 1")
    reader.until("document.querySelectorAll('#mistakes li').length === 1")
    assert page.inner_text("#mistakes").splitlines() == [
        "machine, line 18: unknown key 'parts2' in machine file",
        "did you mean 'parts'?",
    ]
    assert page.inner_text(".cm-lintRange-error") == "parts2"
    assert page.evaluate("document.body.classList.contains('stale')"), "the answer is of the file before"
    reader.pressed(*["Backspace"] * 9)
    reader.until("!document.querySelector('#mistakes li') && !document.body.classList.contains('stale')")


def predicts(reader: Reader) -> None:
    """A prediction sees nothing of the answer; the address keeps it."""
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
    reader.until("document.getElementById('curve-title').textContent.includes('slot')")
    page.locator("#curve").scroll_into_view_if_needed()
    area = page.locator("#curve").bounding_box()
    page.mouse.move(area["x"] + 62, area["y"] + 50)
    page.mouse.down()
    for step in range(12):
        page.mouse.move(area["x"] + 62 + (area["width"] - 80) * step / 11, area["y"] + 50 + 8 * step)
    address = page.evaluate("location.hash")
    page.mouse.up()
    reader.until(f"location.hash !== '{address}'")
    page.reload()
    reader.until(READY)
    assert (reader.time(), page.input_value("#guess")) == ("?", "350 ms"), "the address keeps the guess"
    reader.rests()
    page.locator("#reveal").click()
    assert re.search(r"Your time: 350 ms, (\d+ %|[\d.]+x) too long", page.inner_text("#verdict"))
    assert "Your curve is off by up to" in page.inner_text("#verdict")
    assert reader.time().endswith(" ms")


def shows_a_service(reader: Reader) -> None:
    """Files from the library; the time of an answer takes the place of the run's, which arrivals set, on the curve, too."""
    page = reader.page
    page.locator("#open-machine").select_option("web-server")
    page.locator("#open-workload").select_option("services/object-store")
    reader.until("document.getElementById('interval').textContent.endsWith('latency (p99)')")
    assert reader.time().endswith((" ms", " s"))
    assert page.title().startswith(reader.time())
    name = page.inner_text("#interval")
    reader.until(f"document.getElementById('curve-title').textContent.toLowerCase().startsWith('{name} by ')")
    assert page.get_attribute("#curve", "aria-label").lower().startswith(f"{name} by ")
    assert not page.locator("#steps").is_visible(), "no op to step to"
    page.locator("#pin").click()
    assert page.inner_text("#difference").startswith(f"Pinned: {reader.time()} ")
    page.locator("#predict").click()
    assert page.inner_text("#guess-asks").startswith(f"What will be the {name}?")
    assert reader.time() == "?"
    page.locator("#guess").fill("1 h")
    page.locator("#reveal").click()
    assert "x too long" in page.inner_text("#verdict")


def saves_pictures_and_a_page(reader: Reader, browser: Any, tmp_path: Path) -> None:
    """SVG, PNG and the saved page, which answers a moved slider as the server did, and asks nobody."""
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
    assert "175 ms (90 % interval" in svg
    assert reader.saved("png", tmp_path / "run.png").read_bytes()[:4] == b"\x89PNG"
    page.locator("summary", has_text="Share").click()
    page.locator("#html").click()
    path = times.get_attribute("id")[2:]
    for index, value in enumerate([path, "", ""]):
        page.locator("#axes select").nth(index).select_option(value)
    reader.saved("compute", tmp_path / "run.html")
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
    assert {url.partition(":")[0] for url in saved.asked} <= {"file", "data"}, "it asks nobody"


def has_one_column(reader: Reader) -> None:
    """A narrow window has one column and no way sideways, light and dark."""
    page = reader.page
    page.set_viewport_size({"width": 360, "height": 860})
    page.locator("#watch").click()
    reader.until("!document.getElementById('stage').hidden && document.getElementById('film-title').textContent !== ''")
    for scheme in ("light", "dark"):
        page.emulate_media(color_scheme=scheme)
        reader.until(f"document.documentElement.dataset.theme === '{scheme}'")
        assert page.evaluate("document.documentElement.scrollWidth") == 360
    parts = ("#time", "#sliders", "#curve", "#timeline", "#stage", "#machine", "#editor")
    tops = [page.locator(name).bounding_box()["y"] for name in parts]
    assert tops == sorted(tops), "the sliders come right after the answer"
    page.locator("summary", has_text="Share").click()
    box = page.locator("#html").bounding_box()
    assert box["x"] >= 0
    assert box["x"] + box["width"] <= 360
    page.set_viewport_size({"width": 1280, "height": 860})


def goes_on_with_a_new_server(reader: Reader, browser: Any, server: Server) -> None:
    """A reload, and a new server, bring everything back."""
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
    server.stop()
    page.locator("#undo").focus()
    reader.slider(SLOT).focus()
    reader.pressed("ArrowLeft")
    reader.until("!document.getElementById('notice').hidden")
    assert page.input_value("#notice textarea").startswith("#1.")
    page.close()
    again = Reader(browser, server.start() + fragment)
    assert (again.time(), again.page.inner_text("#settings"), again.page.inner_text("#difference")) == seen
    again.ends()


def plays(reader: Reader) -> None:
    """The run as it goes: by keys, by the clock, with the slider that is moved; still pictures where motion is not wanted."""
    page = reader.page
    page.locator("#watch").focus()
    reader.pressed("Enter")
    reader.until("document.getElementById('film-title').textContent.startsWith('175 ms')")
    assert page.inner_text("#film-kind option:checked") == "timeline"
    page.locator("#stage").focus()
    reader.pressed("ArrowRight", "ArrowRight")
    stepped = page.inner_text("#film-now")
    assert re.fullmatch(r"At [\d.]+ ms: (1 span is|2 spans are) running\.", stepped)
    reader.pressed("ArrowLeft", "ArrowRight")
    assert page.inner_text("#film-now") == stepped
    reader.pressed("+", " ")
    reader.until(f"document.getElementById('film-time').textContent > '{page.inner_text('#film-time')}'")
    assert page.inner_text("#play") == "Pause"
    reader.pressed(" ")
    at, kept = page.input_value("#film-at"), page.evaluate("location.hash")
    reader.slider(SLOT).focus()
    reader.pressed("ArrowLeft", "ArrowLeft", "ArrowLeft")
    reader.until("document.getElementById('film-below').textContent.includes('machine.links.slot.bandwidth=')")
    assert page.input_value("#film-at") == at, "the same part of the run"
    page.emulate_media(reduced_motion="reduce")
    page.locator("#stage").focus()
    reader.pressed("Home", " ")
    page.wait_for_timeout(200)
    assert page.input_value("#film-at") == "0", "no frame moves"
    reader.until("Number(document.getElementById('film-at').value) > 50", 3)
    page.emulate_media(reduced_motion="no-preference")
    reader.until(f"location.hash !== '{kept}'")
    page.reload()
    reader.until(READY)
    reader.until("document.getElementById('film-below').textContent.includes('machine.links.slot.bandwidth=')")
    page.locator("#predict").click()
    assert not page.locator("#film").is_visible(), "it would tell the answer"
