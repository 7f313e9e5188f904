"""Parser of iperf3's JSON, which becomes the efficiency of a network link for TCP or UDP.

Only received bytes count, because sent bytes may be buffered or lost (UDP). Failed runs print `error`. Messages may precede the
JSON.

Source: esnet/iperf, iperf 3.12 and later; keys of `end`: sum_sent, sum_received, sum (UDP), cpu_utilization_percent.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from statistics import fmean, stdev
from typing import Any, Final

from hwsim.formats import percent
from hwsim.links.ethernet import Ethernet
from hwsim_calibrate.fit.machine_file import quantity
from hwsim_calibrate.logs.log import Entry, Log
from hwsim_calibrate.logs.options import LogOptions
from hwsim_calibrate.logs.result import Result, Row, number_of, part

RATES: Final = (0.1e9, 1e9, 2.5e9, 5e9, 10e9, 25e9, 40e9, 50e9, 100e9, 200e9, 400e9, 800e9, 1600e9)  # b/s, of IEEE 802.3
THROTTLED: Final = 0.9  # received over requested rate from which the request is the limit
MIN_LOSS: Final = 1.0  # per cent of lost packets from which a throttled run saturated the link
MIN_DURATION: Final = 1.0  # seconds, because of TCP slow start
# Usual MTUs (bytes), the most frequent first.
USUAL: Final = (1500, 9000, 1460, 1480, 1492, 4000, 4200, 8000, 8500, 8896, 8900, 9001, 9100, 9216, 65535, 65536)
_HINT: Final = "expected the output of `iperf3 -c HOST -J`"


def fit(logs: Sequence[Log], options: LogOptions) -> Result:
    """Fit the efficiency of a link."""
    runs = [_run(log) for log in logs]
    protocols = {protocol for _, protocol, _, _ in runs}
    if len(protocols) > 1:
        raise logs[-1].wrong(0, "the logs are from both TCP and UDP", "import the logs of each protocol separately")
    protocol = runs[0][1]
    rates = [rate for rate, _, _, _ in runs]
    number = number_of(rates, "B/s", separate_runs=True)
    if len(rates) == 1:
        number = replace(number, sigma=runs[0][2], points=max(runs[0][3], 1))
    mtu = min((mtu for log in logs if (mtu := _mtu(log))), default=0)
    keys: dict[str, Any] = {}
    if options.part is not None:
        link = options.part.as_a(Ethernet, "iperf3")
        mtu = mtu or int(link.mtu or 0)
        peak, kind, use = link.rate, options.part.kind, options.part.use
    else:
        share = _share(mtu or 1500, protocol)
        peak = next((rate / 8 for rate in RATES if rate / 8 * share * 1.005 >= number.value), number.value / share)
        kind, use = "ethernet", ""
        ref = "the lowest rate of IEEE 802.3 that is sufficient"
        keys["rate"] = {"value": quantity(peak, "b/s"), "source": "guess", "ref": ref}
    keys |= {"mtu": f"{mtu} B"} if mtu else {}
    payload_rate = peak * _share(mtu or 1500, protocol)
    if number.value > 1.02 * payload_rate:
        message = f"{quantity(number.value, 'b/s')} received, but the link carries {quantity(payload_rate, 'b/s')} of {protocol}"
        raise logs[0].wrong(0, message, "is --part the right link?")
    keys["efficiency"] = replace(number, value=min(number.value / payload_rate, 1.0), unit="%")
    rows = [Row(log.name.rpartition("/")[2], "B/s", rate, number.value) for log, rate in zip(logs, rates, strict=True)]
    left = [sentence for log in logs for sentence in _left(log)]
    return part(
        "iperf3", kind, f"iperf3, received {protocol} payload", keys, use=use, rows=rows, left=left,
        notes=f"{quantity(number.value, 'b/s')} received of {quantity(payload_rate, 'b/s')} possible {protocol} payload",
    )  # fmt: skip


def _run(log: Log) -> tuple[float, str, float | None, int]:
    """Return (received B/s, protocol, standard deviation of the logarithm of the mean, number of intervals)."""
    content = _content(log)
    end = content.need("end")
    protocol = "TCP"
    if (start := content.get("start")) is not None and (test := start.get("test_start")) is not None:
        protocol = "UDP" if (named := test.get("protocol")) is not None and named.text().upper() == "UDP" else "TCP"
    _refuse_throttled(content, end)
    received = end.get("sum_received")
    if received is None or (protocol == "UDP" and (bits := received.get("bits_per_second")) is not None and bits.value == 0):
        if protocol != "UDP":
            raise log.wrong(end.line, "`end` has no key `sum_received`", "use the log of a complete run")
        received = end.need("sum")
    rate = received.need("bits_per_second").number() / 8
    if (length := received.get("seconds")) is not None and length.number() < MIN_DURATION:
        raise log.wrong(length.line, f"the run of {length.text()} s is too short to measure a link", "run for 10 s: -t 10")
    if protocol == "UDP" and (lost := received.get("lost_percent")) is not None and received.path.endswith("sum"):
        share = lost.number(zero=True) / 100
        if share >= 1:
            raise log.wrong(lost.line, "all packets were lost")
        rate *= 1 - share
    seconds = []
    for element in intervals.elements() if (intervals := content.get("intervals")) is not None else []:
        total = element.get("sum")
        omitted = total.get("omitted") if total is not None else None
        if total is not None and (omitted is None or omitted.value is not True):
            seconds.append(total.need("bits_per_second").number(zero=True))
    rates = [interval_rate for interval_rate in seconds if interval_rate > 0]
    sigma = stdev(rates) / fmean(rates) / math.sqrt(len(rates)) if len(rates) > 2 else None
    return rate, protocol, sigma, len(rates)


def _refuse_throttled(content: Entry, end: Entry) -> None:
    """Raise SpecError if the requested bit rate (-b) limited the run."""
    start = content.get("start")
    test = start.get("test_start") if start is not None else None
    limit = next((rate for entry in (test, start) if entry is not None and (rate := entry.get("target_bitrate"))), None)
    if test is None or limit is None or limit.number(zero=True) <= 0:
        return
    streams = test.get("num_streams")
    requested = limit.number() * (streams.number() if streams is not None else 1.0)
    sent = end.get("sum_received") or end.need("sum")
    lost = end.get("sum", "lost_percent")
    is_slow = sent.need("bits_per_second").number(zero=True) < THROTTLED * requested
    if not is_slow and (lost is None or lost.number(zero=True) < MIN_LOSS):
        message = f"the run was throttled to {quantity(requested / 8, 'b/s')} (-b), so the link may be faster"
        raise content.log.wrong(limit.line, message, "measure without a limit: -b 0")


def _content(log: Log) -> Entry:
    failed = next(((line, text) for line, text in log.numbered() if text.startswith("iperf3: error")), None)
    if failed:
        raise log.wrong(failed[0], f"the run failed: {failed[1][8:88]}", "use the log of a successful run")
    content = log.json("end", "error", "intervals", tool="iperf3 -J", hint=_HINT)
    if (error := content.get("error")) is not None:
        raise log.wrong(error.line, f"the run failed: {error.text()}", "use the log of a successful run")
    return content


def _mtu(log: Log) -> int:
    """Return the MTU (bytes) from the segment size of the connection; 0: unknown."""
    start = _content(log).get("start")
    segment = start.get("tcp_mss_default") or start.get("tcp_mss") if start is not None else None
    if segment is None or segment.value == 0:
        return 0
    size = segment.number()
    return next((mtu for mtu in USUAL if size in (mtu - 40, mtu - 52)), 0)  # without and with TCP timestamps


def _share(mtu: float, protocol: str) -> float:
    """Return payload over wire bytes of full packets."""
    framing = Ethernet(rate=1e9, mtu=mtu).framing("udp" if protocol == "UDP" else "tcp")
    return framing.share() if framing else 1.0


def _left(log: Log) -> list[str]:
    end = _content(log).need("end")
    sentences = []
    sent, processors = end.get("sum_sent"), end.get("cpu_utilization_percent")
    if sent is not None and (again := sent.get("retransmits")) is not None and again.value:
        sentences.append(f"{again.text()} retransmitted segments")
    if (reverse := end.get("sum_received_bidir_reverse")) is not None:
        sentences.append(f"the concurrent reverse direction: {quantity(reverse.need('bits_per_second').number() / 8, 'b/s')}")
    if processors is not None and (host := processors.get("host_total")) is not None:
        remote = processors.get("remote_total")
        shares = [percent(share.number(zero=True) / 100, ".0f") for share in (host, remote) if share is not None]
        sentences.append(f"CPU utilization of the hosts: {' and '.join(shares)} of one core")
    return sentences
