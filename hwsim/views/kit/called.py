"""Paths of `--set` as axes call them: a quantity in words."""

from __future__ import annotations

from typing import Final

WORDS: Final = {"count": "number", "use": "kind"}


def called(path: str) -> str:
    """The quantity that a path changes, in words.

    >>> called("machine.links.slot.bandwidth"), called("machine.gpu.count"), called("machine.node.gpu.use")
    ('bandwidth of the link “slot”', 'number of “gpu”', 'kind of “node.gpu”')
    >>> called("workload.train.parallel.tp"), called("let.nodes"), called("machine.let.nodes"), called("cache_share")
    ('tp of “train.parallel”', 'nodes', 'nodes', 'cache share')
    """
    first, *rest = path.split(".")
    if first == "let" and rest:
        return rest[-1].replace("_", " ")
    if first not in ("machine", "workload") or len(rest) < 2:
        return path.replace("_", " ")
    key, of, link = rest[-1], rest[:-1], ""
    if of[0] == "links" and len(of) > 1:
        of, link = of[1:], "the link "
    if of[-1] == "let":
        return key.replace("_", " ")
    return f"{WORDS.get(key, key).replace('_', ' ')} of {link}“{'.'.join(of)}”"
