"""What other simulators said of the same stages of vLLM, beside ours, as a table and a picture.

python -m published.serving_peers --data DIR FILE.png
"""

from __future__ import annotations

import argparse
import statistics
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Final, NamedTuple

from hwsim.formats import percent
from published import serving_profiles
from published.parts import table
from published.serving_rows import read
from published.serving_runs import Found, all_of

OURS: Final = "hwsim"
METRICS: Final[Mapping[str, str]] = {"e2e_mean": "latency", "ttft_mean": "first_token"}
HEAD: Final = "| simulator | stages | end to end, median | end to end, mean | first token, median |\n|---|---|---|---|---|"


class Said(NamedTuple):
    """What a simulator said of a stage: a quantity over what was measured."""

    simulator: str
    stage: tuple[str, ...]
    quantity: str
    ratio: float


def said(data: Path, found: Sequence[Found]) -> list[Said]:
    """Ours, and what others said of the same stages."""
    own = {each.served.key: each for each in found if each.served.key and not each.served.apart}
    out = [
        Said(OURS, key, quantity, each.predicted[quantity] / each.served.measured[quantity])
        for key, each in own.items()
        for quantity in METRICS.values()
    ]
    for row in table(read(data, "blis_peers.csv")):
        key, quantity = (row["set"], row["experiment"], row["stage_index"]), METRICS.get(row["metric_name"])
        if key in own and quantity is not None:
            out.append(Said(row["simulator"], key, quantity, float(row["predicted"]) / float(row["actual"])))
    return list(dict.fromkeys(out))


def as_table(rows: Iterable[Said]) -> str:
    """A line for every simulator, that with the smallest error first."""
    by = _by(rows)
    lines = [
        f"| {name} | {len(errors['latency'])} | {_percent(statistics.median(errors['latency']))}"
        f" | {_percent(statistics.fmean(errors['latency']))}"
        f" | {_percent(statistics.median(errors['first_token'])) if errors['first_token'] else ''} |"
        for name, errors in sorted(by.items(), key=lambda each: statistics.median(each[1]["latency"]))
    ]
    return "\n".join([HEAD, *lines])


def _by(rows: Iterable[Said]) -> dict[str, dict[str, list[float]]]:
    """|error| of each quantity, by simulator."""
    found: dict[str, dict[str, list[float]]] = defaultdict(lambda: {"latency": [], "first_token": []})
    for each in rows:
        found[each.simulator][each.quantity].append(abs(each.ratio - 1))
    return {name: errors for name, errors in found.items() if errors["latency"]}


def _percent(value: float) -> str:
    return percent(value, ".3g" if value < 10 else ".0f")


def draw(rows: Sequence[Said], path: Path) -> None:
    """Write the picture: every stage as a dot, by simulator."""
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot as plt

    figure, axes = plt.subplots(1, 2, figsize=(12, 4), layout="constrained", sharey=True)
    by = sorted(_by(rows).items(), key=lambda each: -statistics.median(each[1]["latency"]))
    names = [name for name, _ in by]
    for axis, (quantity, title) in zip(axes, (("latency", "end to end"), ("first_token", "first token")), strict=True):
        for place, name in enumerate(names):
            ratios = [each.ratio for each in rows if each.simulator == name and each.quantity == quantity]
            axis.plot(ratios, [place] * len(ratios), "o", alpha=0.5)
        axis.axvline(1.0, color="k", linewidth=0.8)
        axis.set(xscale="log", xlabel="predicted over measured", title=f"{title}: stages of vLLM on H100")
        axis.set_yticks(range(len(names)), names)
    figure.savefig(path, dpi=110)


def main() -> None:
    """Draw what the command line says."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True, help="the folder of published measurements")
    parser.add_argument("file", type=Path, help="a .png or .svg")
    arguments = parser.parse_args()
    data: Path = arguments.data
    rows = [*serving_profiles.rows(data), *serving_profiles.experiments(data)]
    draw(said(data, all_of(rows)[0]), arguments.file)


if __name__ == "__main__":
    main()
