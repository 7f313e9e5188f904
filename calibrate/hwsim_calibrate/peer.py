"""The other end of a connection: a process of its own that answers. It imports nothing of hwsim, so that it starts at once.

- python peer.py tcp: prints the port it listens at. Each connection begins with 16 bytes: the size of a message, and the number
  of messages that one byte answers (0: every message is sent back).
- python peer.py pipe: the same over standard input and output.
"""

from __future__ import annotations

import os
import socket
import struct
import sys
import threading
from collections.abc import Callable

HEAD = struct.Struct("<qq")
Fill = Callable[[memoryview], int]
Send = Callable[[memoryview], object]


def receive(read: Fill, into: memoryview) -> bool:
    """Fill the buffer; False at the end of the connection."""
    got = 0
    while got < len(into):
        count = read(into[got:])
        if not count:
            return False
        got += count
    return True


def serve(read: Fill, send: Send) -> None:
    """Answer until the other side has gone."""
    head = bytearray(HEAD.size)
    if not receive(read, memoryview(head)):
        return
    size, batch = HEAD.unpack(head)
    message = memoryview(bytearray(size))
    taken = 0
    while receive(read, message):
        taken += 1
        if not batch:
            send(message)
        elif taken % batch == 0:
            send(message[:1])


def _listen() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        sys.stdout.write(f"{server.getsockname()[1]}\n")
        sys.stdout.flush()
        threading.Thread(target=_end_with_parent, daemon=True).start()
        while True:
            connection, _ = server.accept()
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            with connection:
                try:
                    serve(connection.recv_into, connection.sendall)
                except OSError:  # the other side hung up in the middle
                    continue


def _end_with_parent() -> None:
    sys.stdin.buffer.read()
    os._exit(0)


def _pipe() -> None:
    read, write = sys.stdin.fileno(), sys.stdout.fileno()

    def fill(into: memoryview) -> int:
        data = os.read(read, len(into))
        into[: len(data)] = data
        return len(data)

    def send(data: memoryview) -> None:
        sent = 0
        while sent < len(data):
            sent += os.write(write, data[sent:])

    serve(fill, send)


if __name__ == "__main__":
    {"tcp": _listen, "pipe": _pipe}[sys.argv[1]]()
