"""Intel's Memory Latency Checker: idle latencies and bandwidths between nodes, peaks by share of writes, latency under load.

    Measuring idle latencies for random access (in ns)...    a row for each node of cores, a column for each of memory
    ALL Reads        :  163473.8                             MB/s = 1e6 B/s, all nodes together
     00000  130.31   135655.9                                delay, ns, MB/s; delay 0 is the peak, the last row is nearly idle

Source: Intel Memory Latency Checker, user guide (v3.6 to v3.11 print the same tables).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from statistics import median
from typing import Any, Final

from hwsim.devices import Cpu
from hwsim_calibrate.fit.writing import quantity
from hwsim_calibrate.logs.asked import Ask
from hwsim_calibrate.logs.log import Log
from hwsim_calibrate.logs.result import Number, Result, Row, number_of, part, scale_of

Matrix = list[list[float]]
PAIR: Final = 2  # nodes up to which each is a socket, unless the part has several in one
OWN: Final = 1.25  # of a node's own latency, below which another node is of its socket
_MIX: Final = re.compile(
    r"^\s*(ALL Reads|(\d):(\d) Reads-Writes|Stream-triad like|All NT writes|1:1 Read-NT write)\s*:\s*(\S+)\s*$"
)
_LOADED: Final = re.compile(r"^\s*(\d{5,})\s+(\S+)\s+(\S+)\s*$")
_MATRIX: Final = re.compile(r"^\s*(\d{1,4})((?:\s+[\d.]+)+)\s*$")
_HEAD: Final = re.compile(r"^\s*Numa node((?:\s+\d+)+)\s*$", re.IGNORECASE)
_HINT: Final = "it has lines such as `Measuring idle latencies (in ns)...` or `ALL Reads : 163473.8`"
SECTIONS: Final = {
    "measuring idle latencies": "latency", "measuring memory bandwidths between nodes": "bandwidth",
    "measuring peak": "peak", "measuring maximum": "peak", "measuring loaded": "loaded", "measuring": "",
}  # fmt: skip


@dataclass
class Tables:
    """The tables of one or several logs: seconds and B/s; mixes: (reads, writes, B/s); loaded: (seconds, B/s)."""

    latencies: list[Matrix] = field(default_factory=list)
    bandwidths: list[Matrix] = field(default_factory=list)
    reads: list[float] = field(default_factory=list)
    mixes: list[tuple[int, int, float]] = field(default_factory=list)
    loaded: list[tuple[float, float]] = field(default_factory=list)
    words: dict[str, None] = field(default_factory=dict)


def fit(logs: Sequence[Log], ask: Ask) -> Result:
    """Latencies, what reading sustains, what a write costs, and the way to other nodes."""
    tables = Tables()
    for log in logs:
        _read(log, tables)
    matrices = [*tables.latencies, *tables.bandwidths]
    sizes = {len(matrix) for matrix in matrices}
    if len(sizes) > 1:
        raise logs[-1].wrong(0, f"tables of {' and of '.join(map(str, sorted(sizes)))} nodes", "logs of one machine go together")
    nodes = max(sizes, default=1)
    cpu = ask.part.as_a(Cpu, "MLC") if ask.part is not None else None
    domains = cpu.numa.domains if cpu is not None and cpu.numa else 1
    sockets, left = _sockets(logs[0], tables, nodes, domains, ask)
    domains = max(nodes // sockets, 1)
    latency = number_of(_own(tables.latencies), "s") if tables.latencies else None
    if latency is None and tables.loaded:
        latency = number_of([min(seconds for seconds, _ in tables.loaded)], "s", "the least latency under load")
    peak = number_of([rate / sockets for rate in tables.reads], "B/s") if tables.reads else None
    if peak is None and (tables.bandwidths or tables.loaded):
        rates = _own(tables.bandwidths) or [max(rate for _, rate in tables.loaded)]
        peak = number_of(rates, "B/s", "of one node's cores to their own memory" if tables.bandwidths else "the peak under load")
        peak = replace(peak, value=peak.value * domains)
    words = ", ".join(tables.words) or "MLC"
    left += [_curve(tables.loaded)] if tables.loaded else []
    if cpu is None or ask.part is None:
        if peak is None:
            raise logs[0].wrong(0, "MLC's latencies alone are no memory", "name the cpu: --part, or add the log of the peaks")
        keys: dict[str, Any] = {"bandwidth": peak} | ({"latency": latency} if latency else {})
        more = tables.mixes or nodes > 1
        left += ["what writes cost, and other nodes: --part names the cpu that they belong to"] if more else []
        return part("MLC", "memory", words, keys, left=left, notes=f"one of {sockets} sockets" if sockets > 1 else "")
    return _cpu(logs[0], tables, ask, cpu, sockets, (latency, peak), (words, left), domains)


def _sockets(log: Log, tables: Tables, nodes: int, domains: int, ask: Ask) -> tuple[int, list[str]]:
    """Sockets of a machine with so many NUMA nodes, and in words if it is taken from the latencies."""
    if ask.sockets:
        if nodes % ask.sockets and ask.sockets % nodes:
            raise log.wrong(0, f"{nodes} nodes are no {ask.sockets} sockets", "--sockets says how many were busy together")
        return ask.sockets, []
    if not tables.latencies:
        if nodes > PAIR and domains == 1:
            message = f"{nodes} nodes may be sockets, or parts of one, and no latencies tell"
            raise log.wrong(0, message, "say it: --sockets 2, or add the table of idle latencies")
        return max(nodes // domains, 1), []
    table = tables.latencies[0]
    sockets = len(
        {min(to for to in range(nodes) if to == index or table[index][to] < OWN * table[index][index]) for index in range(nodes)}
    )
    if nodes % sockets:
        raise log.wrong(0, f"{nodes} nodes, of which {sockets} are far apart", "say it: --sockets 2")
    said = f"{nodes} nodes are taken as {sockets} socket{'s' if sockets > 1 else ''}, as they are near: --sockets says otherwise"
    return sockets, [said] if sockets < nodes else []


def _cpu(
    log: Log, tables: Tables, ask: Ask, cpu: Cpu, sockets: int, local: tuple[Number | None, Number | None],
    words: tuple[str, list[str]], domains: int,
) -> Result:  # fmt: skip
    assert ask.part is not None
    latency, peak = local
    numa: dict[str, Any] = {}
    memory: dict[str, Any] = {"latency": latency} if latency else {}
    rows: list[Row] = []
    for matrix in tables.latencies if latency else []:
        rows += [Row(f"latency, node {at}", "s", each[at], latency.value if latency else 0.0) for at, each in enumerate(matrix)]
    if peak is not None and tables.reads:
        if peak.value > cpu.memory.bandwidth * 1.02:
            message = f"{quantity(peak.value, 'B/s')} of a socket, but {ask.part.use} has {quantity(cpu.memory.bandwidth, 'B/s')}"
            raise log.wrong(0, message, f"it counts {sockets} sockets; --sockets says how many, or it is another part")
        numa["efficiency"] = replace(peak, value=min(peak.value / cpu.memory.bandwidth, 1.0), unit="%")
        rows += [Row("all reads", "B/s", rate, peak.value * sockets) for rate in tables.reads]
        if tables.mixes:
            costs = [(read + written) * peak.value * sockets / rate - read for read, written, rate in tables.mixes]
            weights = [written / (read + written) for read, written, _ in tables.mixes]
            cost = max(sum(c * w * w for c, w in zip(costs, weights, strict=True)) / sum(w * w for w in weights), 0.01)
            times = [((read + cost * written) / (read + written), rate) for read, written, rate in tables.mixes]
            over = scale_of([(peak.value * sockets / rate, time) for time, rate in times], "1")
            numa["write_cost"] = replace(over, value=cost)
            rows += [
                Row(f"{read}:{written} reads to writes", "B/s", rate, peak.value * sockets / time)
                for (read, written, _), (time, rate) in zip(tables.mixes, times, strict=True)
            ]
    more = [value - own for own, value in _pairs(tables.latencies, domains)]
    if more and min(more) > 0:
        numa["remote_latency"] = number_of(more, "s")
        rows += [Row("more to another socket", "s", each, numa["remote_latency"].value) for each in more]
    away = [value for _, value in _pairs(tables.bandwidths, domains)]
    if away and domains == 1:
        numa["remote_bandwidth"] = number_of(away, "B/s")
        rows += [Row("from another socket", "B/s", each, numa["remote_bandwidth"].value) for each in away]
    elif away:
        rate = quantity(median(away), "B/s")
        words[1].append(f"from a node of another socket {rate}: what all nodes of a socket have is not in it")
    keys = ({"memory": memory} if memory else {}) | ({"numa": numa} if numa else {})
    notes = f"{sockets} sockets together" if sockets > 1 else ""
    return part("MLC", "cpu", words[0], keys, use=ask.part.use, rows=rows, left=words[1], notes=notes)


def _read(log: Log, tables: Tables) -> None:
    section, width, matrix = "", 0, list[list[float]]()
    before = len(tables.latencies) + len(tables.bandwidths) + len(tables.reads) + len(tables.mixes) + len(tables.loaded)
    for line, text in log.numbered():
        lower = text.strip().lower()
        opening = next((each for each in SECTIONS if lower.startswith(each)), None)
        if opening is not None:
            if len(matrix) < width:
                raise log.wrong(line, f"a table of {width} nodes has {len(matrix)} rows", "the log is cut off")
            section, width, matrix = SECTIONS[opening], 0, []
            if section == "latency" and "sequential" in lower:
                tables.words["MLC, sequential latencies"] = None
        elif "checker" in lower and "v" in lower:
            tables.words[re.sub(r".*checker[ -]*", "MLC ", lower).strip()[:40]] = None
        elif "unable to modify prefetchers" in lower:
            tables.words["prefetchers left on"] = None
        elif "using all the threads from each core" in lower:
            tables.words["all hyper-threads"] = None
        elif section in ("latency", "bandwidth") and (match := _HEAD.match(text)):
            width = len(match[1].split())
        elif width and section in ("latency", "bandwidth") and (match := _MATRIX.match(text)):
            cells = match[2].split()
            if len(cells) != width or int(match[1]) != len(matrix):
                message = f"row {match[1]} with {len(cells)} numbers in a table of {width} nodes"
                raise log.wrong(line, message, "nodes without memory, or a log that is cut off")
            scale = 1e-9 if section == "latency" else 1e6
            matrix.append([log.number(cell, f"a {section}", line) * scale for cell in cells])
            if len(matrix) == width:
                (tables.latencies if section == "latency" else tables.bandwidths).append(matrix)
                section, width, matrix = "", 0, []
        elif section == "peak" and (match := _MIX.match(text)):
            rate = log.number(match[4], "a bandwidth", line) * 1e6
            if match[1] == "ALL Reads":
                tables.reads.append(rate)
            elif match[2] and int(match[2]) and int(match[3]):
                tables.mixes.append((int(match[2]), int(match[3]), rate))
        elif section == "loaded" and (match := _LOADED.match(text)):
            seconds, rate = log.number(match[2], "a latency", line) * 1e-9, log.number(match[3], "a bandwidth", line) * 1e6
            tables.loaded.append((seconds, rate))
    if len(matrix) < width:
        raise log.wrong(len(log.lines), f"a table of {width} nodes has {len(matrix)} rows", "the log is cut off")
    if len(tables.latencies) + len(tables.bandwidths) + len(tables.reads) + len(tables.mixes) + len(tables.loaded) == before:
        raise log.nothing("MLC", _HINT)


def _own(matrices: Sequence[Matrix]) -> list[float]:
    """The diagonals: of a node's cores to its own memory."""
    return [row[at] for matrix in matrices for at, row in enumerate(matrix)]


def _pairs(matrices: Sequence[Matrix], domains: int) -> list[tuple[float, float]]:
    """(a node's own, the same to a node of another socket), of all such pairs."""
    return [
        (row[at], value)
        for matrix in matrices
        for at, row in enumerate(matrix)
        for to, value in enumerate(row)
        if to // domains != at // domains
    ]


def _curve(loaded: Sequence[tuple[float, float]]) -> str:
    """Latency under load, in words: no key of a part holds it."""
    most = max(rate for _, rate in loaded)
    half = median([seconds for seconds, rate in loaded if rate <= 0.5 * most] or [min(loaded)[0]])
    at_peak = max(seconds for seconds, rate in loaded if rate >= 0.95 * most)
    return (
        f"latency under load, {len(loaded)} rows: {quantity(min(loaded)[0], 's')} idle, {quantity(half, 's')} up to half of "
        f"{quantity(most, 'B/s')}, {quantity(at_peak, 's')} at the peak; a part's latency is the idle one"
    )
