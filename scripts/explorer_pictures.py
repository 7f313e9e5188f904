"""Take the pictures of docs/explore.md: `python scripts/explorer_pictures.py [NAME ...]`. It needs Playwright and a Chromium.

Names: explore, explore.dark, explore.film, explore.predict.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from io import BytesIO
from pathlib import Path
from shutil import which
from typing import Any, Final

from PIL import Image
from playwright.sync_api import sync_playwright

import hwsim

PICTURES: Final = Path(__file__).resolve().parent.parent / "docs" / "pictures"
SLOT: Final = "machine.links.slot.bandwidth"
OVERLAP: Final = ("d2l-gpu-workstation", "d2l/copy-overlap")
LONGEST: Final = 120.0  # seconds until something is shown
SEEN: Final = 340  # thousandths of the run of the ring


def until(page: Any, what: str) -> None:
    """Wait for an expression; the page's policy forbids Playwright's own way."""
    end = time.monotonic() + LONGEST
    while not page.evaluate(what):
        if time.monotonic() > end:
            raise TimeoutError(what)
        page.wait_for_timeout(50)


@contextmanager
def shown(browser: Any, *files: str, wide: int = 1280, high: int = 860, scheme: str = "light", **options: Any) -> Iterator[Any]:
    """A page of the explorer, at rest."""
    explorer = hwsim.explore(*files, browser=False, **options)
    page = browser.new_page(viewport={"width": wide, "height": high}, color_scheme=scheme)
    try:
        page.goto(explorer.address)
        until(page, "document.body.dataset.ready === 'yes' && Number(document.body.dataset.rests || 0) > 0")
        yield page
    finally:
        page.close()
        explorer.stop()


def explore(browser: Any) -> bytes:
    """A run, and the pinned one with a slower link."""
    with shown(browser, *OVERLAP, set={SLOT: "0.315 GB/s"}) as page:
        page.locator("#pin").click()
        before = page.evaluate("Number(document.body.dataset.rests)")
        page.locator(f"[id='s-{SLOT}']").press("Delete")
        until(page, f"Number(document.body.dataset.rests) > {before} && !document.querySelector('.old')")
        page.locator("h1").hover()
        return bytes(page.screenshot())


def dark(browser: Any) -> bytes:
    """A training."""
    with shown(browser, "dgx-a100", "resnet50-dp", set={"each": 48}, scheme="dark", high=1000) as page:
        print(page.inner_text("#drawn"))
        return bytes(page.screenshot())


def film(browser: Any) -> bytes:
    """A ring all-reduce under way."""
    options = {"algorithm": "ring", "workload.program.0.allreduce.steps": "explicit"}
    with shown(browser, "d2l-8gpu-nvlink", "d2l/two-nvlink-rings", set=options, wide=1400) as page:
        page.locator("#watch").click()
        until(page, "document.getElementById('film-title').textContent !== ''")
        page.locator("#film-kind").select_option(label="sends from device to device")
        until(page, "document.getElementById('film-title').textContent.includes('sends')")
        page.locator("#stage").focus()
        while int(page.input_value("#film-at")) < SEEN:
            page.keyboard.press("ArrowRight")
        page.locator("h1").click()
        return bytes(page.locator("#film").screenshot())


def predict(browser: Any) -> bytes:
    """A prediction, revealed."""
    with shown(browser, *OVERLAP, wide=1280, high=620) as page:
        before = page.evaluate("Number(document.body.dataset.rests)")
        for key in ("ArrowLeft", "Delete"):  # the curve of this slider
            page.locator(f"[id='s-{SLOT}']").press(key)
        until(page, f"Number(document.body.dataset.rests) > {before} && !document.querySelector('.old')")
        page.locator("#predict").click()
        page.locator("#guess").fill("262 ms")
        until(page, "document.querySelectorAll('#guess-change option').length > 2")
        page.locator("#guess-limit").select_option("link slot gpu->cpu")
        page.locator("#guess-change").select_option("bandwidth of link slot doubled")
        page.evaluate("document.querySelector('.turn').scrollTo(0, 0)")
        area = page.locator("#curve").bounding_box()
        x, y = area["x"] + 62, area["y"] + 38
        page.mouse.move(x, y)
        page.mouse.down()
        wide = area["width"] - 80
        for step in range(21):
            part = step / 20
            page.mouse.move(x + wide * part, y + min(part, 0.45) * 160, steps=4)
        page.mouse.up()
        before = page.evaluate("Number(document.body.dataset.rests)")
        page.locator("#reveal").click()
        until(page, f"Number(document.body.dataset.rests) > {before} && !document.querySelector('.old')")
        page.evaluate("scrollTo(0, 0)")
        return bytes(page.screenshot())


TAKEN: Final = {"explore": explore, "explore.dark": dark, "explore.film": film, "explore.predict": predict}


def main(names: list[str]) -> int:
    """Take them."""
    found = next(filter(None, map(which, ("chromium", "chromium-browser", "google-chrome"))))
    with sync_playwright() as started:
        browser = started.chromium.launch(executable_path=found, args=["--no-sandbox", "--disable-gpu", "--disable-lcd-text"])
        for name in names or TAKEN:
            picture = Image.open(BytesIO(TAKEN[name](browser))).convert("RGB")
            picture = picture.quantize(256, Image.Quantize.MAXCOVERAGE, dither=Image.Dither.NONE)  # the others merge rare colours
            picture.save(PICTURES / f"{name}.png", optimize=True)
        browser.close()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
