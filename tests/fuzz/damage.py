"""Ways to damage a document that know what it is made of, and ways to damage bytes that do not."""

from __future__ import annotations

import gzip
import json
import random
import re
from collections.abc import Callable, Iterator
from copy import deepcopy
from typing import Any, Final

Spot = tuple[Any, Any]  # a container, and the key or index of a value in it

VALUES: Final[tuple[Any, ...]] = (
    0, 1, -1, 2, 3, 7, 10**6, 10**9, 10**15, 2**31, 2**53, 2**63, 2**64, -(2**63), 10**39, 0.5, 0.1, -0.0, 1e-300, 5e-324,
    1e290, 1e308, -1e308,
    "0 s", "1 fs", "0.1 fs", "1 s", "3 h", "1e9 s", "1e290 s", "-1 s", "0 B", "1 B", "9.3 EB", "1e290 B", "0 GB/s", "1 B/s",
    "1e300 GB/s",
    "-5 GB/s", "1 FLOP/s", "1e-300 GFLOP/s", "100 %", "0 %", "1000 %", "-3 %", "5 Hz", "1 1/s", "1e-30 1/s", "1e30 1/s",
    "1 W", "1 USD",
    None, True, False, "", " ", "\n", "nan", "inf", ".inf", ".nan", "~", "~x/y.yaml", "on", "0x7", "017", "12:30", [], {},
    [[]], {"a": 1}, [1, 2],
    "$n", "$nope", "$", "${", "$self", "$rank", "($rank + 1) mod $ranks", "$n / 0", "9**9**9", "2 * 3 s", "1 GB + 1 s",
    "min(", "ceil(1e300)",
    "cpu", "gpu", "gpu*", "cpu*", "gpu0", "gpu[0]", "gpu[99]", "gpu[-1]", "gpu[0..9999999]", "*", "**", "all", "rest",
    "auto", "none", "every",
    "disk", "nic*", "node0.gpu1", "node*.gpu*", "../x.yaml", "/etc/hostname", "/dev/null", ".", "d2l-gpu", "d2l-laptop",
    "v100-sxm2-32gb",
    "ring", "tree", "last-use", "\u202e", "\u00a0", "\ufeff", "é" * 50, "x" * 3000, "\x1b]0;x\x07", "\x00", "a: b", "'", '"',
    "#", "- x",
    "1..3", "1..1000000", "1..0", "1..64:x1", "1..64:x0", "1,2,,3", "poisson", {"poisson": "1 1/s"}, {"every": "1 ms"},
    {"clients": 10**9},
    {"value": "1 s", "source": "guess"}, {"value": 1, "source": "measured", "ref": "x", "low": 2, "high": 1},
    {"use": "nope"}, {"use": "."},
)  # fmt: skip
TOKENS: Final = tuple(
    b"{ } [ ] , : - # & * ! | > ' \" % @ ` ? << $ \x00 \xff \xff\xfe \xfe\xff \xef\xbb\xbf \x1b[2J \r \t --- ... "
    b"!!python/object:os.system "
    b"&a *a \xe2\x80\xae 1e999 -1 nan NaN Infinity null true 99999999999999999999 0x 1_000".split(b" ")
)
_NUMBER: Final = re.compile(r"^\s*(-?[0-9.]+(?:[eE][-+]?[0-9]+)?)(.*)$", re.DOTALL)


def spots(value: Any) -> Iterator[Spot]:
    """Every place in a document where a value stands."""
    waiting = [value]
    while waiting:
        inside = waiting.pop()
        for key in list(inside) if isinstance(inside, dict) else range(len(inside)) if isinstance(inside, list) else ():
            yield inside, key
            if isinstance(inside[key], dict | list):
                waiting.append(inside[key])


def damaged(document: Any, dice: random.Random, donors: Callable[[], Any]) -> Any:
    """A copy with one to four changes.  donors: gives another document, parts of which are put in."""
    made = deepcopy(document)
    for _ in range(dice.choice((1, 1, 1, 1, 2, 3))):
        found = list(spots(made))
        if found:
            _change(*dice.choice(found), found, dice, donors)
    return made


def _change(inside: Any, key: Any, found: list[Spot], dice: random.Random, donors: Callable[[], Any]) -> None:
    match dice.randrange(12):
        case 0 | 1:
            inside[key] = deepcopy(dice.choice(VALUES))
        case 2 | 3 | 4 | 5:
            inside[key] = scaled(inside[key], dice)
        case 6:
            other, at = dice.choice(found)
            inside[key] = deepcopy(other[at]) if at in _keys(other) else None
        case 7:
            del inside[key]
        case 8 if isinstance(inside, dict):  # a key of another name
            other, at = dice.choice(found)
            name = at if isinstance(at, str) else dice.choice(("name", "use", "count", "let", "times", "x"))
            inside[name] = inside.pop(key)
        case 8 | 9 if isinstance(inside, list):
            inside[key:key] = [deepcopy(inside[key]) for _ in range(dice.choice((1, 2, 20)))]
        case 10:
            for _ in range(dice.choice((1, 1, 3, 60, 120))):
                inside[key] = [inside[key]] if dice.random() < 0.5 else {"repeat": {"times": 2, "do": inside[key]}}
        case _:
            other, at = dice.choice(list(spots(donors())) or [([None], 0)])
            if isinstance(inside, dict) and isinstance(at, str) and dice.random() < 0.6:
                inside[at] = deepcopy(other[at])
            else:
                inside[key] = deepcopy(other[at])


def _keys(inside: Any) -> Any:
    return inside if isinstance(inside, dict) else range(len(inside))


def scaled(value: Any, dice: random.Random) -> Any:
    """The same quantity, larger or smaller, or with the unit of something else."""
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return deepcopy(dice.choice(VALUES))
    if isinstance(value, int):
        return dice.choice(
            (value + 1, value + 1, value - 1, value * 2, -value, value * 1000, value * 10**9, value * 10**18, value / 3)
        )
    if isinstance(value, float):
        return value * 10.0 ** dice.randint(-20, 20)
    match = _NUMBER.match(value)
    if match is None:
        return (
            value + dice.choice(("0", "*", "[0]", " ", ".x", "~"))
            if dice.random() < 0.5
            else value[: dice.randint(0, len(value))]
        )
    number, unit = match.groups()
    if dice.random() < 0.3:
        return number + dice.choice(
            (" s", " B", " GB/s", " FLOP", "", " %", " Hz", " W", " kB", " min", " 1/s", " GHz", " tokens")
        )
    return f"{number}e{dice.randint(-25, 25)}{unit}" if "e" not in number.lower() else number + unit


def torn(data: bytes, dice: random.Random) -> bytes:
    """The bytes with one to four of them changed, cut, doubled, or strangers put in."""
    made = bytearray(data)
    for _ in range(dice.choice((1, 1, 2, 4))):
        at = dice.randint(0, len(made))
        end = min(len(made), at + dice.choice((1, 1, 4, 40, 400)))
        match dice.randrange(6):
            case 0:
                made[at:end] = dice.randbytes(end - at)
            case 1:
                del made[at:end]
            case 2:
                made[at:at] = made[at:end]
            case 3:
                made[at:at] = dice.choice(TOKENS)
            case 4 if at < len(made):
                made[at] ^= 1 << dice.randrange(8)
            case _:
                del made[at if dice.random() < 0.3 else end :]
    return bytes(made)


def json_damaged(data: bytes, dice: random.Random) -> bytes:
    """A JSON file, damaged as a document or as bytes, packed or not."""
    document = json.loads(data)
    made = (
        json.dumps(damaged(document, dice, lambda: document)).encode("utf-8", "surrogatepass")
        if dice.random() < 0.7
        else torn(data, dice)
    )
    if dice.random() < 0.3:
        made = gzip.compress(made, mtime=0)
        return torn(made, dice) if dice.random() < 0.5 else made
    return made


def paths(document: Any, before: str = "") -> Iterator[tuple[str, Any]]:
    """Every value of a document with its path, as a setting names it."""
    for key in document if isinstance(document, dict) else range(len(document)) if isinstance(document, list) else ():
        yield f"{before}{key}", document[key]
        yield from paths(document[key], f"{before}{key}.")
