"""The page of `hwsim explore`: what it is made of."""

from __future__ import annotations

import re
import tomllib
from hashlib import sha256
from pathlib import Path

import pytest

from tests.loading import script

PAGE = Path(__file__).resolve().parent.parent / "hwsim" / "explorer" / "page"
OWN = sorted(path for path in PAGE.iterdir() if path.suffix in (".js", ".css", ".html") and path.name != "codemirror.js")


def test_the_editor_is_the_module_that_is_pinned(tmp_path: Path) -> None:
    """As `vendor_codemirror.py --lock` finds without a network, which also finds a byte, a package and a licence changed."""
    vendoring, pinned = script("vendor_codemirror"), tomllib.loads((PAGE / "codemirror.toml").read_text("utf-8"))
    assert vendoring.different(pinned, PAGE) == []
    module, licences = (PAGE / pinned["file"]).read_bytes(), (PAGE / pinned["licences"]).read_text("utf-8")
    assert pinned["sha256"] == sha256(module).hexdigest()
    (tmp_path / pinned["file"]).write_bytes(module.replace(b"EditorView", b"EditorVieW", 1))
    (tmp_path / pinned["licences"]).write_text(licences.replace("crelt 1.0.7, MIT", "crelt 1.0.8, ISC"), "utf-8")
    wrong = vendoring.different(pinned | {"packages": pinned["packages"] | {"style-mod": "^4.1.4"}}, tmp_path)
    assert [fault.partition(":")[0] for fault in wrong] == [pinned["file"], "crelt", "style-mod", "crelt", "style-mod"]


@pytest.mark.parametrize("path", OWN, ids=lambda path: path.name)
def test_a_file_of_the_page_is_small_and_asks_for_nothing_from_elsewhere(path: Path) -> None:
    text = path.read_text("utf-8")
    assert len(text.splitlines()) <= 300
    assert set(re.findall(r"https?://[\w./-]+", text)) <= {"http://www.w3.org/2000/svg"}, "a namespace, not an address"
    assert not re.search(r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(|new Function", text), "names are text"
    assert not re.search(r"<[^>]* style=|<script>(?!\$)| on\w+=\"", text), "refused by the page's policy"


def test_every_element_that_a_module_looks_for_is_on_the_page() -> None:
    there = set(re.findall(r'\bid="([\w-]+)"', (PAGE / "index.html").read_text("utf-8")))
    sought = {name for path in OWN if path.suffix == ".js" for name in re.findall(r'\$\("([\w-]+)"\)', path.read_text("utf-8"))}
    assert sought - there == {"saved"}, "the answers of a saved page"
