"""An explorer page as one HTML file without a server: the page's modules and styles, and the answers over a grid of sliders.

The modules become `data:` addresses in an import map, because a page that was opened from a file cannot import other files.
"""

from __future__ import annotations

import json
import re
import zlib
from base64 import b64encode, urlsafe_b64encode
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from importlib.resources import files
from typing import Any, Final

Ask = Callable[[str, Mapping[str, Any]], Mapping[str, Any]]
STEPS: Final = {1: 25, 2: 15, 3: 9}  # values of each slider, by the number of sliders
PLACE: Final = "SAVED"  # where the content stands in the frame
POLICY: Final = "default-src 'none'; script-src 'unsafe-inline' data:; style-src 'unsafe-inline'; img-src data: blob:"
_KEPT: Final = ("guess", "piece", "theme")  # of the page's state, beside both files and the settings


class NotSaved(Exception):
    """An error for a page that cannot be saved, with a message for its reader."""


def saved(
    ask: Ask, question: Mapping[str, Any], paths: Sequence[str], *, film: str = "", films: bool = True, steps: int = 0
) -> dict[str, Any]:
    """Return the content of a saved page: answers over a grid, timelines along its axes, derivations, drawings and animations.

    Args:
        ask: function that answers the requests of the page.
        question: state of the page, as in each of its requests.
        paths: paths of one to three sliders.
        film: kind of the animation that is also saved along the axes; "first": the most informative; "": none.
        films: whether to save animations.
        steps: values of each slider; 0: `STEPS`.

    Raises:
        NotSaved: the files have an error, or a path has no slider.
    """

    def asked(door: str, **more: Any) -> Mapping[str, Any]:
        found = ask(door, {**question, **more})
        if found.get("mistakes"):
            raise NotSaved("; ".join(mistake["text"] for mistake in found["mistakes"]))
        return found

    settings, paths = question.get("set", {}), tuple(dict.fromkeys(paths))
    base = asked("run", part=[0, 1])
    question = {**question, "coloured": base["coloured"]}
    grid = asked("grid", paths=list(paths), steps=steps or STEPS[len(paths)])
    pictures = dict[str, Any]()
    for key, run in grid["runs"].items():
        if run["picture"] not in pictures:
            pictures[run["picture"]] = asked("picture", set={**settings, **_turned(grid, key)})
    by_path = {slider["path"]: slider for slider in asked("sliders")["sliders"]}
    turned = [
        {**by_path[axis["path"]], **axis, "group": "parameters", "text": axis["values"][axis["at"]]} for axis in grid["axes"]
    ]
    fixed = {path: value for path, value in settings.items() if path not in paths}
    state = {key: question[key] for key in ("machine", "workload", "called", *_KEPT) if key in question}
    return {
        "state": state | {"v": 1, "set": fixed, "part": [0, 1], "curve": paths[0], "film": film},
        "grid": grid,
        "more": asked("more"),
        "pictures": pictures,
        "films": _films(asked, settings, grid, film) if films else {"kind": "", "kinds": [], "scenes": {}},
        "sliders": turned,
        "base": base,
    }


def _turned(grid: Mapping[str, Any], key: str) -> dict[str, str]:
    """Return the settings at a point of the grid that differ from the page's own."""
    places = map(int, key.split(","))
    return {axis["path"]: axis["values"][place] for axis, place in zip(grid["axes"], places, strict=True) if place != axis["at"]}


def _films(
    asked: Callable[..., Mapping[str, Any]], settings: Mapping[str, str], grid: Mapping[str, Any], film: str
) -> dict[str, Any]:
    """Return all animations of the page's own values, and one kind of them along the axes."""
    own, scenes = ",".join(str(axis["at"]) for axis in grid["axes"]), dict[str, Any]()

    def shot(key: str, scene: str, *, listed: bool) -> Mapping[str, Any]:
        found = asked("animated", set={**settings, **_turned(grid, key)}, scene=scene, listed=listed)
        if found["scene"]:
            scenes[f"{found['kind']} {key}"] = {"scene": found["scene"], "text": found["text"]}
        return found

    first = shot(own, "" if film == "first" else film, listed=True)
    for kind, _, why in first["kinds"]:
        if not why and kind != first["kind"]:
            shot(own, kind, listed=False)
    for key in grid["runs"] if film else ():
        if key != own:
            shot(key, first["kind"], listed=False)
    return {"kind": first["kind"], "kinds": first["kinds"], "scenes": scenes}


def contents(content: Mapping[str, Any]) -> str:
    """Return a text that describes the content of a page."""
    grid = content["grid"]
    answers = sum(seconds is not None for seconds in grid["answers"])
    stopped = "; stopped at the time limit, others are missing" if grid["stopped"] else ""
    return f"{answers:,} answers, {len(grid['runs'])} timelines{stopped}"


def page(content: Mapping[str, Any]) -> str:
    """Return the HTML file with a content."""
    return frame().replace(PLACE, packed(content))


def packed(content: object) -> str:
    """Return a content as deflated JSON in characters that are legal in a URL and in a script element."""
    flow = zlib.compressobj(9, wbits=-15)
    text = json.dumps(content, allow_nan=False, separators=(",", ":")).encode()
    return urlsafe_b64encode(flow.compress(text) + flow.flush()).decode().rstrip("=")


def unpacked(text: str) -> Any:
    """Return the content of a packed text; raise ValueError if it is damaged.

    >>> unpacked(packed({"time": "45 ms"}))
    {'time': '45 ms'}
    """
    import binascii
    from base64 import urlsafe_b64decode

    try:
        flow = zlib.decompressobj(-15)
        return json.loads(flow.decompress(urlsafe_b64decode(text + "=" * (-len(text) % 4)), 1 << 22))
    except (binascii.Error, zlib.error, UnicodeDecodeError, RecursionError) as error:
        raise ValueError(str(error)) from error


@cache
def frame() -> str:
    """Return the HTML file with `PLACE` for its content."""
    modules, left = dict[str, str](), ["app.js"]
    while left:
        name = left.pop()
        if name not in modules:
            modules[name] = page_file(name)
            left += re.findall(r'from "\./([\w.]+)"', modules[name])
    imports = {f"hwsim/{name}": _address(code.replace('from "./', 'from "hwsim/')) for name, code in modules.items()}
    named = f'<script type="importmap">{json.dumps({"imports": imports})}</script>'
    content = f'<script type="text/plain" id="saved">{PLACE}</script>'
    looks = f"<style>{page_file('look.css')}{page_file('parts.css')}</style>"
    whole = page_file("index.html")
    for pattern, text in (
        (r'<link rel="stylesheet"[^>]*look\.css">', looks),
        (r'<link rel="stylesheet"[^>]*parts\.css">\n', ""),
        (r'<meta name="csp-nonce"[^>]*>', f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">'),
        (r'<script type="module"[^>]*></script>', f'{content}\n{named}\n<script type="module">import "hwsim/app.js";</script>'),
    ):
        whole = text.join(_around(whole, pattern))
    return whole


def _around(whole: str, pattern: str) -> tuple[str, str]:
    """Return the text before and after a pattern, which occurs once."""
    (found,) = re.finditer(pattern, whole)
    return whole[: found.start()], whole[found.end() :]


def _address(code: str) -> str:
    return f"data:text/javascript;base64,{b64encode(code.encode()).decode()}"


@cache
def page_file(name: str) -> str:
    """Return the text of a file of the page."""
    return files("hwsim.explorer").joinpath("page", name).read_text("utf-8")
