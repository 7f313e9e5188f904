"""The page of `hwsim explore`: what it is made of."""

from __future__ import annotations

import re
import tomllib
from hashlib import sha256
from pathlib import Path

import pytest

PAGE = Path(__file__).resolve().parent.parent / "hwsim" / "explore" / "page"
OWN = sorted(path for path in PAGE.iterdir() if path.suffix in (".js", ".css", ".html") and path.name != "codemirror.js")


def test_the_editor_is_the_module_that_is_pinned() -> None:
    pinned = tomllib.loads((PAGE / "codemirror.toml").read_text("utf-8"))
    module = (PAGE / pinned["file"]).read_bytes()
    assert (sha256(module).hexdigest(), len(module)) == (pinned["sha256"], pinned["bytes"])
    licences = (PAGE / pinned["licences"]).read_text("utf-8")
    for name, version in pinned["packages"].items():
        assert f"{name} {version}, MIT\n" in licences
        assert re.fullmatch(r"\d+\.\d+\.\d+", version), "a version, and no range of them"


@pytest.mark.parametrize("path", OWN, ids=lambda path: path.name)
def test_a_file_of_the_page_is_small_and_asks_for_nothing_from_elsewhere(path: Path) -> None:
    text = path.read_text("utf-8")
    assert len(text.splitlines()) <= 300
    assert set(re.findall(r"https?://[\w./-]+", text)) <= {"http://www.w3.org/2000/svg"}, "a namespace, not an address"
    assert not re.search(r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(|new Function", text), "names are text"
    assert not re.search(r"<[^>]* style=|<script>(?!\$)| on\w+=\"", text) or path.name == "saving.js", (
        "refused by the page's policy"
    )


def test_every_element_that_a_module_looks_for_is_on_the_page() -> None:
    there = set(re.findall(r'\bid="([\w-]+)"', (PAGE / "index.html").read_text("utf-8")))
    sought = {name for path in OWN if path.suffix == ".js" for name in re.findall(r'\$\("([\w-]+)"\)', path.read_text("utf-8"))}
    assert sought - there == {"saved"}, "the answers of a saved page"
