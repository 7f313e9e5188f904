"""TCP over the loopback, to a process of its own: half a round trip by size of the message, and a stream of many.

It shows the time of the operating system; cables and NICs add theirs.
"""

from __future__ import annotations

import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from functools import partial
from typing import Final

from hwsim_calibrate import peer
from hwsim_calibrate.case import CannotMeasure, Case
from hwsim_calibrate.clocks import Call
from hwsim_calibrate.store import Amounts, Param
from hwsim_calibrate.suites import MiB, Scope

MESSAGES: Final = (1, 64, 512, 1024, 4096, 16384, 65536, 262144, MiB, 4 * MiB)
STREAMED: Final = (1024, 16384, 65536, 262144, MiB)
STREAM: Final = 8 * MiB
_SECONDS: Final = 10.0  # that an answer may take


def missing() -> str:
    """Why this machine cannot run the suite; "" if it can."""
    try:
        with socket.create_server(("127.0.0.1", 0)) as server, socket.create_connection(server.getsockname(), _SECONDS):
            return ""
    except OSError as error:
        return f"no loopback: {error.strerror or error}"


def cases(scope: Scope) -> Iterator[Case]:
    """All cases."""
    port = _Port(scope.session)
    for size in MESSAGES:
        work = Amounts(0, size, size)
        params: dict[str, Param] = {"bytes": size, "pattern": "pingpong"}
        yield Case("network", "tcp", params, work, partial(_ping, port, size), "wall", 9, 5e-3, loop=2)
    for size in STREAMED:
        work = Amounts(0, size, size)
        params = {"bytes": size, "pattern": "stream"}
        count = STREAM // size if size >= 16384 else 1024
        yield Case("network", "tcp", params, work, partial(_stream, port, size, count), "wall", 5, 5e-3, loop=count)
    yield Case("network", "tcp_connect", {}, Amounts(), partial(_connect, port), "wall", 5, 5e-3)


class _Port:
    """The port of the peer, which is started when first needed, and ends with the session."""

    def __init__(self, session: ExitStack) -> None:
        self._session = session
        self._port = 0

    def __call__(self) -> int:
        if not self._port:
            command = [sys.executable, "-I", "-S", peer.__file__, "tcp"]
            process = self._session.enter_context(subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE))
            self._session.callback(process.terminate)
            line = process.stdout.readline() if process.stdout else b""
            if not line.strip().isdigit():
                raise CannotMeasure("the other end of the connection did not start")
            self._port = int(line)
        return self._port


def _joined(port: _Port, size: int, batch: int, stack: ExitStack) -> socket.socket:
    link = stack.enter_context(socket.create_connection(("127.0.0.1", port()), _SECONDS))
    link.settimeout(None)
    link.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    link.sendall(peer.HEAD.pack(size, batch))
    return link


def _ping(port: _Port, size: int, stack: ExitStack) -> Call:
    link = _joined(port, size, 0, stack)
    out, back = bytes(size), memoryview(bytearray(size))

    def call() -> None:
        link.sendall(out)
        peer.receive(link.recv_into, back)

    return call


def _stream(port: _Port, size: int, count: int, stack: ExitStack) -> Call:
    link = _joined(port, size, count, stack)
    out = bytes(size)

    def call() -> None:
        for _ in range(count):
            link.sendall(out)
        link.recv(1)

    return call


def _connect(port: _Port, _: ExitStack) -> Call:
    where = ("127.0.0.1", port())
    return lambda: socket.create_connection(where).close()
