"""A report is one page that needs nothing else, shows hostile names as text, and works in a browser."""

from __future__ import annotations

import json
import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

import hwsim
from hwsim.views.report import run_page
from hwsim.views.report.page import written
from hwsim.views.report.sections import (
    BarSection,
    Cell,
    FigureSection,
    Lines,
    Page,
    ReportBar,
    ReportColumn,
    TableSection,
    TimelineLane,
    TimelineSection,
    WaterfallSection,
)

HOSTILE = """</script><img src=x onerror="document.title='hit'">'"&<b>{{ 7 * 7 }}\u2028"""


def page_of(*sections: Any, answer: str = "42 ms") -> Page:
    return Page("a page", answer, ["a sentence"], ["a warning"], sections)


def everything(name: str) -> Page:
    """A page with every kind of section, and this name wherever a name may stand."""
    return Page(
        name,
        name,
        [name],
        [name],
        [
            Lines(name, [name]),
            TableSection(
                name,
                [ReportColumn(name), ReportColumn(name, right=True)],
                [(Cell(name), Cell("2", 2.0)), (Cell("b"), Cell("1", 1.0))],
            ),
            BarSection(name, [ReportBar(name, 1.0, 3.0, name), ReportBar("b", 2.0, 2.0, "")], centre=2.0, note=name),
            WaterfallSection(name, (name, 5.0, name), [(name, -3.0, name), ("b", 1.0, "")], (name, 3.0, name), note=name),
            FigureSection(name, b"<svg xmlns='http://www.w3.org/2000/svg'/>", name),
            TimelineSection(name, [TimelineLane(name, [(0.0, 1.0, 0), (1.0, 2.0, 1)])], [name, "b"], 3.0, note=name),
        ],
    )


def text_of(page: Page) -> str:
    return b"".join(written(page)).decode()


class Elements(HTMLParser):
    """Tags with their attributes, and the text between them."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.texts: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        self.texts.append(data)


def test_a_page_loads_nothing() -> None:
    elements = Elements(text_of(everything("a")))
    links = [value for _, attributes in elements.tags for key, value in attributes.items() if key in ("src", "href", "action")]
    assert all(link is not None and link.startswith("data:") for link in links)
    assert not re.search(r"url\(|@import|fetch\(|XMLHttpRequest|eval\(", text_of(everything("a")))


def test_names_are_text_and_never_elements() -> None:
    """The elements of a page do not depend on the names in it."""
    plain, hostile = Elements(text_of(everything("a"))), Elements(text_of(everything(HOSTILE)))
    assert [tag for tag, _ in hostile.tags] == [tag for tag, _ in plain.tags]
    assert [sorted(attributes) for _, attributes in hostile.tags] == [sorted(attributes) for _, attributes in plain.tags]
    assert "".join(hostile.texts).count(HOSTILE) >= 10  # as it was written, not 49


def test_the_numbers_of_a_timeline_come_back() -> None:
    spans = TimelineSection("t", [TimelineLane(HOSTILE, [(0.125, 0.5, 0)])], [HOSTILE], 1.0)
    found = re.search(r'<script type="application/json">(.*?)</script>', text_of(page_of(spans)), re.DOTALL)
    assert found is not None
    data = json.loads(found[1])
    assert data["lanes"] == [{"name": HOSTILE, "start": [0.125], "took": [0.5], "of": [0]}]
    assert data["names"] == [HOSTILE]


def test_the_policy_allows_the_script_that_is_there() -> None:
    from base64 import b64encode
    from hashlib import sha256

    text = text_of(page_of())
    script = re.findall(r"<script>(.*?)</script>", text, re.DOTALL)
    assert len(script) == 1
    assert f"script-src 'sha256-{b64encode(sha256(script[0].encode()).digest()).decode()}'" in text


def test_a_waterfall_ends_where_its_changes_lead() -> None:
    bars = WaterfallSection("w", ("before", 5.0, ""), [("faster", -3.0, ""), ("slower", 1.0, "")], ("after", 3.0, "")).bars()
    assert [(bar.low, bar.high) for bar in bars.bars] == [(0, 5), (2, 5), (2, 3), (0, 3)]


def test_a_scale_with_numbers_begins_at_0_and_holds_all_bars() -> None:
    bars = BarSection(
        "b", [ReportBar("a", 9.1, 13.2, ""), ReportBar("b", 46.0, 65.0, "")], centre=10.9, shown=lambda value: f"<{value:g}>"
    )
    text = text_of(page_of(bars))
    marks = [(float(left), shown) for left, shown in re.findall(r'<span style="left:([\d.]+)%">&lt;(\d+)&gt;</span>', text)]
    assert marks == [(0, "0"), (25, "20"), (50, "40"), (75, "60"), (100, "80")]
    assert re.findall(r'class="bar" style="left:([\d.]+)%', text) == [f"{9.1 / 0.8:.3f}", "57.500"]


def test_a_page_without_bars_and_rows_is_a_page() -> None:
    empty = [BarSection("b", []), TableSection("t", [ReportColumn("c")], []), TimelineSection("s", [], [], 0.0), Lines("l", [])]
    assert text_of(page_of(*empty)).endswith("</html>")


def test_the_page_of_a_run(tmp_path: Path) -> None:
    run = hwsim.simulate("d2l-4gpu-pcie", "d2l/multi-gpu-lenet", expect=False)
    once, again = (run.report(tmp_path / name).read_bytes() for name in ("a.html", "b.html"))
    assert once == again
    text = "".join(Elements(once.decode()).texts)
    page = run_page.page(run)
    assert page.answer.startswith("step time: 1.43 ms for 256 images")
    titles = ["Summary", "Critical path by bound", "Uncertainty", "Activities", "Resources", "Timeline", "Assumptions"]
    assert [section.title for section in page.sections] == titles
    assert "NVIDIA Turing GPU Architecture" in text


def test_the_page_of_a_sweep(tmp_path: Path) -> None:
    study = hwsim.sweep("d2l-laptop", "d2l/async-loop", {"n": [4, 8, 0], "workload.name": ["a", HOSTILE]})
    elements = Elements(study.report(tmp_path / "page.html").read_text("utf-8"))
    rows = [attributes for tag, attributes in elements.tags if tag == "tr"]
    assert len(rows) == 1 + len(study.rows)
    assert sum(attributes.get("class") == "marked" for attributes in rows) == 2
    assert HOSTILE.strip() in "".join(elements.texts)
    assert sum(tag == "img" for tag, _ in elements.tags) == 1


def test_the_page_of_a_comparison(tmp_path: Path) -> None:
    """The bars of its waterfall lead from A to B."""
    from hwsim.comparing import compare
    from hwsim.comparing.page import of_comparison
    from hwsim.comparing.say import sentence

    loop = "d2l/async-loop"
    both = compare(
        ("d2l-laptop", "d2l-laptop"), (loop, loop), set_a={"blocking": True, "n": 50}, set_b={"blocking": False, "n": 50}
    )
    page = of_comparison(both)
    assert page.answer == sentence(both)
    [steps] = [section for section in page.sections if isinstance(section, WaterfallSection)]
    assert steps.start[1] + sum(change for _, change, _ in steps.changes) == pytest.approx(steps.end[1], rel=1e-12)
    assert "blocking: true -> false" in both.report(tmp_path / "page.html").read_text("utf-8").replace("&gt;", ">")


def test_the_page_of_a_plan(tmp_path: Path) -> None:
    """Every option is on the page: those that hold as rows, the others by their reasons."""
    from hwsim.planning import plan, read_question
    from hwsim.planning.page import of_answer

    question = f"""
hwsim: plan/1
name: {json.dumps(HOSTILE)}
machine: d2l-laptop
workload: d2l/async-loop
vary: {{workload.runtime.queue_depth: [1, 2, 4, 64], workload.let.blocking: [true, false]}}
require: [time at most 40 ms]
minimise: time
"""
    answer = plan(read_question(question))
    page = of_answer(answer)
    tables = {section.title: section for section in page.sections if isinstance(section, TableSection)}
    assert len(tables["Options that meet the requirements"].rows) == 4
    reasons = tables["Rejected (4)"]
    assert sum(int(row[0].text) for row in reasons.rows) == 4
    assert HOSTILE.strip() in "".join(Elements(answer.report(tmp_path / "page.html").read_text("utf-8")).texts)


# ---------------------------------------------------------------- in a browser, where there is one


class Opened:
    """A page in the browser, and what it complained of."""

    def __init__(self, browser: Any, path: Path, width: int = 1000, before: str = "") -> None:
        self.page = browser.new_page(viewport={"width": width, "height": 800})
        self.page.add_init_script(before)
        self.said: list[str] = []
        self.page.on("console", lambda message: self.said.append(message.text))
        self.page.on("pageerror", lambda error: self.said.append(str(error)))
        self.page.on(
            "request", lambda request: self.said.extend([] if request.url.startswith(("file:", "data:")) else [request.url])
        )
        self.page.goto(path.as_uri())


def saved(page: Page, path: Path) -> Path:
    path.write_bytes(b"".join(written(page)))
    return path


def test_hostile_names_are_harmless_in_a_browser(browser: Any, tmp_path: Path) -> None:
    opened = Opened(browser, saved(everything(HOSTILE), tmp_path / "page.html"))
    assert opened.said == []
    assert opened.page.title().split() == HOSTILE.split()
    assert opened.page.evaluate("document.querySelectorAll('img').length") == 1


@pytest.mark.parametrize("width", [360, 1000])
def test_a_page_is_not_wider_than_its_window(browser: Any, tmp_path: Path, width: int) -> None:
    long = "a-name-without-any-place-to-break-it-" * 5
    opened = Opened(browser, saved(everything(long), tmp_path / "page.html"), width)
    assert opened.page.evaluate("document.documentElement.scrollWidth") == width


def test_a_click_on_a_heading_sorts_numbers_as_numbers(browser: Any, tmp_path: Path) -> None:
    rows = [
        (Cell("a"), Cell("10 s", 10.0)),
        (Cell("b"), Cell("900 ms", 0.9)),
        (Cell("c"), Cell("")),
        (Cell("d"), Cell("2 s", 2.0)),
    ]
    table = TableSection("t", [ReportColumn("name"), ReportColumn("time", right=True)], rows)
    opened = Opened(browser, saved(page_of(table), tmp_path / "page.html"))
    first = "Array.from(document.querySelectorAll('tbody tr'), row => row.cells[0].textContent).join('')"
    opened.page.click("th:nth-child(2) button")
    assert opened.page.evaluate(first) == "bdac"
    opened.page.click("th:nth-child(2) button")
    assert opened.page.evaluate(first) == "adbc"


COUNTED = """
window.drawn = 0;
const fill = CanvasRenderingContext2D.prototype.fillRect;
CanvasRenderingContext2D.prototype.fillRect = function (...box) { window.drawn += 1; fill.apply(this, box); };
"""
ZOOMED = """async () => {
  const canvas = document.querySelector("canvas"), counts = [];
  for (let i = 0; i < 20; i++) {
    window.drawn = 0;
    canvas.dispatchEvent(new KeyboardEvent("keydown", { key: "+" }));
    await new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)));
    counts.push(window.drawn);
  }
  return counts;
}"""


def test_a_timeline_of_ten_thousand_spans_draws_what_can_be_seen(browser: Any, tmp_path: Path) -> None:
    """A picture costs at most a rectangle for each pixel of a row, and fewer the nearer one looks."""
    lanes = [
        TimelineLane(f"lane {row}", [(row * 1e-5 + place * 1e-4, 0.9e-4, (row + place) % 20) for place in range(10_000)])
        for row in range(3)
    ]
    spans = TimelineSection("timeline", lanes, [f"op {number}" for number in range(20)], 1.1)
    opened = Opened(browser, saved(page_of(spans), tmp_path / "page.html"), before=COUNTED)
    opened.page.wait_for_function("window.drawn > 0")
    assert opened.page.evaluate("window.drawn") <= 2 * 3 * 1000
    counts = opened.page.evaluate(ZOOMED)
    assert counts[-1] <= 6
    assert all(0 < count <= 3 * 1000 for count in counts)
    opened.page.hover("canvas", position={"x": 600, "y": 30})
    assert "lane 0: " in opened.page.inner_text(".timeline-said")
    assert opened.said == []
