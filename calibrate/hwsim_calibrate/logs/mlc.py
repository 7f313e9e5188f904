"""Parser of Intel Memory Latency Checker: latencies and bandwidths between NUMA nodes, peaks, latency under load.

    Measuring idle latencies for random access (in ns)...    one row per CPU node, one column per memory node
    ALL Reads        :  163473.8                             MB/s = 1e6 B/s, sum of all nodes
     00000  130.31   135655.9                                delay, ns, MB/s; the first row is the peak, the last almost idle

Source: Intel Memory Latency Checker, user guide (v3.6 to v3.11 print the same tables).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from statistics import median
from typing import Any, Final

from hwsim.devices import Cpu
from hwsim_calibrate.fit.machine_file import quantity
from hwsim_calibrate.logs.log import Log
from hwsim_calibrate.logs.options import LogOptions
from hwsim_calibrate.logs.result import Number, Result, Row, number_of, part, scale_of

Matrix = list[list[float]]
MAX_PLAIN_NODES: Final = 2  # nodes up to which each node is a socket, unless the part has several nodes per socket
SAME_SOCKET: Final = 1.25  # remote over local latency, below which both nodes are in one socket
_MIX: Final = re.compile(
    r"^\s*(ALL Reads|(\d):(\d) Reads-Writes|Stream-triad like|All NT writes|1:1 Read-NT write)\s*:\s*(\S+)\s*$"
)
_LOADED: Final = re.compile(r"^\s*(\d{5,})\s+(\S+)\s+(\S+)\s*$")
_MATRIX: Final = re.compile(r"^\s*(\d{1,4})((?:\s+[\d.]+)+)\s*$")
_HEAD: Final = re.compile(r"^\s*Numa node((?:\s+\d+)+)\s*$", re.IGNORECASE)
_HINT: Final = "expected lines such as `Measuring idle latencies (in ns)...` or `ALL Reads : 163473.8`"
SECTIONS: Final = {
    "measuring idle latencies": "latency", "measuring memory bandwidths between nodes": "bandwidth",
    "measuring peak": "peak", "measuring maximum": "peak", "measuring loaded": "loaded", "measuring": "",
}  # fmt: skip


@dataclass
class Tables:
    """The tables of one or several logs.

    Args:
        latencies: matrices of latencies between nodes (s).
        bandwidths: matrices of bandwidths between nodes (B/s).
        reads: peak read bandwidths (B/s).
        mixes: (reads, writes, bandwidth in B/s).
        loaded: (latency in s, bandwidth in B/s) under load.
        words: conditions of the measurement.
    """

    latencies: list[Matrix] = field(default_factory=list)
    bandwidths: list[Matrix] = field(default_factory=list)
    reads: list[float] = field(default_factory=list)
    mixes: list[tuple[int, int, float]] = field(default_factory=list)
    loaded: list[tuple[float, float]] = field(default_factory=list)
    words: dict[str, None] = field(default_factory=dict)


def fit(logs: Sequence[Log], options: LogOptions) -> Result:
    """Fit latency, sustained read bandwidth, cost of writes, and remote latency and bandwidth."""
    tables = Tables()
    for log in logs:
        _read(log, tables)
    matrices = [*tables.latencies, *tables.bandwidths]
    sizes = {len(matrix) for matrix in matrices}
    if len(sizes) > 1:
        message = f"the logs have tables of {' and '.join(map(str, sorted(sizes)))} nodes"
        raise logs[-1].wrong(0, message, "import the logs of each machine separately")
    nodes = max(sizes, default=1)
    cpu = options.part.as_a(Cpu, "MLC") if options.part is not None else None
    domains = cpu.numa.domains if cpu is not None and cpu.numa else 1
    sockets, left = _sockets(logs[0], tables, nodes, domains, options)
    domains = max(nodes // sockets, 1)
    latency = number_of(_own(tables.latencies), "s") if tables.latencies else None
    if latency is None and tables.loaded:
        latency = number_of([min(seconds for seconds, _ in tables.loaded)], "s", "the lowest latency under load")
    peak = number_of([rate / sockets for rate in tables.reads], "B/s") if tables.reads else None
    if peak is None and (tables.bandwidths or tables.loaded):
        rates = _own(tables.bandwidths) or [max(rate for _, rate in tables.loaded)]
        peak = number_of(rates, "B/s", "from one node to its local memory" if tables.bandwidths else "the peak under load")
        peak = replace(peak, value=peak.value * domains)
    words = ", ".join(tables.words) or "MLC"
    left += [_curve(tables.loaded)] if tables.loaded else []
    if cpu is None or options.part is None:
        if peak is None:
            message = "latencies without bandwidths do not define a memory"
            raise logs[0].wrong(0, message, "name the CPU with --part, or add the log of the peak bandwidths")
        keys: dict[str, Any] = {"bandwidth": peak} | ({"latency": latency} if latency else {})
        more = tables.mixes or nodes > 1
        left += ["the cost of writes and remote access, because they belong to a CPU (--part)"] if more else []
        return part("MLC", "memory", words, keys, left=left, notes=f"one of {sockets} sockets" if sockets > 1 else "")
    return _cpu(logs[0], tables, options, cpu, sockets, (latency, peak), (words, left), domains)


def _sockets(log: Log, tables: Tables, nodes: int, domains: int, options: LogOptions) -> tuple[int, list[str]]:
    """Return the number of sockets, and a note if it is derived from the latencies."""
    if options.sockets:
        if nodes % options.sockets and options.sockets % nodes:
            raise log.wrong(0, f"{nodes} nodes cannot be {options.sockets} sockets", "--sockets is the number of busy sockets")
        return options.sockets, []
    if not tables.latencies:
        if nodes > MAX_PLAIN_NODES and domains == 1:
            message = f"the number of sockets of {nodes} nodes is unknown without latencies"
            raise log.wrong(0, message, "use --sockets 2, or add the table of idle latencies")
        return max(nodes // domains, 1), []
    table = tables.latencies[0]
    groups = [[to for to in range(nodes) if to == node or row[to] < SAME_SOCKET * row[node]] for node, row in enumerate(table)]
    sockets = len({min(group) for group in groups})
    if nodes % sockets:
        raise log.wrong(0, f"{nodes} nodes form {sockets} groups by latency, which is not a divisor", "use --sockets 2")
    note = f"{nodes} nodes are assumed to be {sockets} socket{'s' if sockets > 1 else ''}, because of their latencies (--sockets)"
    return sockets, [note] if sockets < nodes else []


def _cpu(
    log: Log, tables: Tables, options: LogOptions, cpu: Cpu, sockets: int, local: tuple[Number | None, Number | None],
    words: tuple[str, list[str]], domains: int,
) -> Result:  # fmt: skip
    assert options.part is not None
    latency, peak = local
    numa: dict[str, Any] = {}
    memory: dict[str, Any] = {"latency": latency} if latency else {}
    rows: list[Row] = []
    for matrix in tables.latencies if latency else []:
        idle = latency.value if latency else 0.0
        rows += [Row(f"latency, node {node}", "s", values[node], idle) for node, values in enumerate(matrix)]
    if peak is not None and tables.reads:
        if peak.value > cpu.memory.bandwidth * 1.02:
            limit = quantity(cpu.memory.bandwidth, "B/s")
            message = f"{quantity(peak.value, 'B/s')} per socket, but {options.part.use} has {limit}"
            raise log.wrong(0, message, f"{sockets} socket{'s' if sockets > 1 else ''} assumed: use --sockets, or another --part")
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
        rows += [Row("additional latency to another socket", "s", extra, numa["remote_latency"].value) for extra in more]
    away = [value for _, value in _pairs(tables.bandwidths, domains)]
    if away and domains == 1:
        numa["remote_bandwidth"] = number_of(away, "B/s")
        rows += [Row("from another socket", "B/s", rate, numa["remote_bandwidth"].value) for rate in away]
    elif away:
        rate = quantity(median(away), "B/s")
        words[1].append(f"{rate} from a node of another socket, because the rate of a whole socket is unknown")
    keys = ({"memory": memory} if memory else {}) | ({"numa": numa} if numa else {})
    notes = f"sum of {sockets} sockets" if sockets > 1 else ""
    return part("MLC", "cpu", words[0], keys, use=options.part.use, rows=rows, left=words[1], notes=notes)


def _read(log: Log, tables: Tables) -> None:
    section, width, matrix = "", 0, list[list[float]]()
    before = len(tables.latencies) + len(tables.bandwidths) + len(tables.reads) + len(tables.mixes) + len(tables.loaded)
    for line, text in log.numbered():
        lower = text.strip().lower()
        opening = next((title for title in SECTIONS if lower.startswith(title)), None)
        if opening is not None:
            if len(matrix) < width:
                raise log.wrong(line, f"the table of {width} nodes has {len(matrix)} rows", "the log is truncated")
            section, width, matrix = SECTIONS[opening], 0, []
            if section == "latency" and "sequential" in lower:
                tables.words["MLC, sequential latencies"] = None
        elif "checker" in lower and "v" in lower:
            tables.words[re.sub(r".*checker[ -]*", "MLC ", lower).strip()[:40]] = None
        elif "unable to modify prefetchers" in lower:
            tables.words["prefetchers enabled"] = None
        elif "using all the threads from each core" in lower:
            tables.words["all hyper-threads"] = None
        elif section in ("latency", "bandwidth") and (match := _HEAD.match(text)):
            width = len(match[1].split())
        elif width and section in ("latency", "bandwidth") and (match := _MATRIX.match(text)):
            cells = match[2].split()
            if len(cells) != width or int(match[1]) != len(matrix):
                message = f"row {match[1]} of the table of {width} nodes has {len(cells)} numbers"
                raise log.wrong(line, message, "are there nodes without memory, or is the log truncated?")
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
        raise log.wrong(len(log.lines), f"the table of {width} nodes has {len(matrix)} rows", "the log is truncated")
    if len(tables.latencies) + len(tables.bandwidths) + len(tables.reads) + len(tables.mixes) + len(tables.loaded) == before:
        raise log.nothing("MLC", _HINT)


def _own(matrices: Sequence[Matrix]) -> list[float]:
    """Return the diagonals, the values of local memory."""
    return [row[node] for matrix in matrices for node, row in enumerate(matrix)]


def _pairs(matrices: Sequence[Matrix], domains: int) -> list[tuple[float, float]]:
    """Return (local value, remote value) of all pairs of nodes in different sockets."""
    return [
        (row[node], value)
        for matrix in matrices
        for node, row in enumerate(matrix)
        for to, value in enumerate(row)
        if to // domains != node // domains
    ]


def _curve(loaded: Sequence[tuple[float, float]]) -> str:
    """Return the latency under load as text, because parts have no key for it."""
    peak = max(rate for _, rate in loaded)
    half = median([seconds for seconds, rate in loaded if rate <= 0.5 * peak] or [min(loaded)[0]])
    at_peak = max(seconds for seconds, rate in loaded if rate >= 0.95 * peak)
    return (
        f"latency under load, {len(loaded)} rows: {quantity(min(loaded)[0], 's')} idle, {quantity(half, 's')} up to half of "
        f"{quantity(peak, 'B/s')}, {quantity(at_peak, 's')} at the peak; the part has the idle latency"
    )
