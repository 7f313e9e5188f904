"""`hwsim.explore`: the page, with the server behind it in a thread of its own."""

from __future__ import annotations

import atexit
import html
import json
import secrets
import socket
import threading
import webbrowser
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

from hwsim.explorer import starting

if TYPE_CHECKING:
    from hwsim.explorer.server import Running
    from hwsim.workload.sources import Source

LOOK: Final = 0.5  # seconds between looks for Ctrl-C, which does not end a wait on every system


def _run(running: Running, ended: threading.Event) -> None:
    try:
        running.run()
    finally:
        ended.set()


class Explorer:
    """An explorer that runs until `stop()`, or until Python ends. A notebook shows its address as a link."""

    def __init__(self, address: str, ended: threading.Event, end: Callable[[], None]) -> None:
        self.address = address
        self._ended, self._end = ended, end
        atexit.register(self.stop)

    def wait(self) -> None:
        """Wait until Ctrl-C, which stops it."""
        try:
            while not self._ended.wait(LOOK):  # an event: Python 3.11 takes a thread whose `join` was interrupted for ended
                pass
        except KeyboardInterrupt:
            self.stop()

    def stop(self) -> None:
        """End the server and the processes that compute for it; the address answers no more."""
        atexit.unregister(self.stop)
        self._end()
        self._ended.wait()

    def __repr__(self) -> str:
        return f"Explorer at {self.address}"

    def _repr_html_(self) -> str:
        return f'<p>hwsim explorer: <a href="{html.escape(self.address)}" target="_blank">open the page</a></p>'


def explore(
    machine: Source = "d2l-gpu-workstation",
    workload: Source = "d2l/copy-overlap",
    *,
    set: Mapping[str, object] | None = None,  # noqa: A002 (the word of the command line)
    port: int = 0,
    browser: bool = True,
    allow: Sequence[str | Path] = (),
    state: str = "",
) -> Explorer:
    """Open a page on this computer that shows a run and moves with the hand: `hwsim explore`, which needs the extra [explore].

    It goes on while the calling program does; `explore(...).wait()` waits until Ctrl-C.

    Args:
        set: settings that the page begins with.
        port: a port of this computer; 0: a free one.
        browser: whether to open the browser; the address is in the answer.
        allow: folders whose files the texts of the page may use, besides the library.
        state: what stands behind the # of an address of another explorer.

    Raises:
        SpecError: there is no such file.
        OSError: the port is taken.
        ModuleNotFoundError: the extra is not installed.
    """
    starting.begin()  # while this process imports
    try:
        from hwsim.explorer import server
        from hwsim.explorer.workers import Limits, Workers
    except ModuleNotFoundError as missing:
        message = f"the explorer needs {missing.name}: pip install 'hwsim[explore]'"
        raise ModuleNotFoundError(message, name=missing.name) from None
    settings = {path: value if isinstance(value, str) else json.dumps(value) for path, value in (set or {}).items()}
    opened = server.opened(machine, workload, settings)
    line = socket.create_server(("127.0.0.1", port))
    session, token = line.getsockname()[1], secrets.token_urlsafe(24)
    workers, ready, ended = Workers(tuple(map(str, allow)), Limits()), threading.Event(), threading.Event()
    running = server.Running(server.application(token, session, opened, workers=workers, ready=ready.set), line, workers)
    threading.Thread(target=_run, args=(running, ended), name="hwsim explore", daemon=True).start()
    while not ready.wait(LOOK) and not ended.is_set():
        pass
    address = f"http://127.0.0.1:{session}/?token={token}" + (f"#{state.rpartition('#')[2]}" if state else "")
    explorer = Explorer(address, ended, running.end)
    if browser:
        webbrowser.open(address)
    return explorer
