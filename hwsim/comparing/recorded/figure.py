"""Both runs as lanes over one axis of time: of each the GPUs' kernels and transfers, and the hosts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np
from numpy.typing import NDArray

from hwsim.comparing.recorded.where import Where
from hwsim.formats import format_quantity, percent
from hwsim.ticks import FEMTO
from hwsim.views.lanes.draw import Bars, Lane, Lanes

if TYPE_CHECKING:
    from hwsim.comparing.recorded.against import AgainstTrace
    from hwsim.comparing.recorded.played import Played

SHOWN: Final = 4  # GPUs of each run
PLACES: Final = (Where.KERNELS, Where.TRANSFER, Where.WAITING, Where.HOST)


def figure(both: AgainstTrace) -> Lanes:
    """The figure as data."""
    rows = [row for word, side in zip(both.words, (both.first, both.second), strict=True) for row in _rows(word, side)]
    times = ", ".join(f"{word} {format_quantity(side.makespan_s, 's')}" for word, side in
                      zip(both.words, (both.first, both.second), strict=True))  # fmt: skip
    more = max(len(side.devices) for side in (both.first, both.second)) - SHOWN
    hidden = f"; {more} more GPUs not shown" if more > 0 else ""
    title = f"{times} ({percent(both.error, '+.1f')})"
    below = f"{both.first.title}\n{both.second.title}{hidden}"
    end = max(both.first.makespan_s, both.second.makespan_s)
    return Lanes(title, end, tuple(where.words for where in PLACES), tuple(rows), below, PLACES.index(Where.WAITING))


def _rows(word: str, side: Played) -> list[Lane]:
    """Lanes of one run: of each GPU its kernels, and its transfers if it has any; and what the hosts do."""
    spans, rows = side.spans, list[Lane]()
    is_between = np.array([kind == "python" for _, kind in side.names], np.bool_)[spans.name]
    hosts = [number for number, name in enumerate(side.device_names) if name not in {each.name for each in side.devices}]
    for device in side.devices[:SHOWN]:
        number = side.device_names.index(device.name)
        of_gpu = spans.device == number
        prefix = device.name.rpartition(".")[0]
        mine = [each for each in hosts if side.device_names[each].rpartition(".")[0] == prefix]
        of_host = np.isin(spans.device, mine) & (spans.place == Where.HOST) & ~is_between
        parts = [
            ("host", of_host, (Where.HOST,)),
            ("kernels", of_gpu & (spans.place == Where.KERNELS), (Where.KERNELS,)),
            ("transfer", of_gpu & (spans.place == Where.TRANSFER), (Where.TRANSFER, Where.WAITING)),
        ]
        for name, chosen, places in parts:
            if chosen.any():
                rows.append(Lane(word, f"{device.name} {name}", tuple(_bars(side, chosen, where) for where in places)))
    busy = side.mean[Where.KERNELS] / side.makespan_fs if side.makespan_fs else 0.0
    return [row._replace(block=f"{word}: kernels {percent(busy, '.0f')}") for row in rows]


def _bars(side: Played, chosen: NDArray[np.bool_], where: Where) -> Bars:
    """Bars of one colour: the ops themselves, or their waiting."""
    spans = side.spans
    begin, waited, end = spans.begin[chosen], spans.waited[chosen], spans.end[chosen]
    low, high = (begin, begin + waited) if where == Where.WAITING else (begin + waited, end)
    is_there = high > low
    order = np.argsort(low[is_there], kind="stable")
    from_s, to_s = (each[is_there][order].astype(np.float64) / FEMTO for each in (low, high))
    return Bars(PLACES.index(where), from_s, to_s)
