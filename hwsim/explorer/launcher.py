"""`hwsim.explore`: start the explorer server in a thread and open its page."""

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

from hwsim.explorer import fork_server

if TYPE_CHECKING:
    from hwsim.explorer.server import ExplorerServer
    from hwsim.workload.sources import Source

LOOK: Final = 0.5  # s between checks for Ctrl-C, which does not interrupt a wait on every system


def _run(running: ExplorerServer, ended: threading.Event) -> None:
    try:
        running.run()
    finally:
        ended.set()


class Explorer:
    """A running explorer, until `stop()` or the end of Python. A notebook shows its address as a link."""

    def __init__(self, address: str, ended: threading.Event, end: Callable[[], None]) -> None:
        self.address = address
        self._ended, self._end = ended, end
        atexit.register(self.stop)

    def wait(self) -> None:
        """Wait for Ctrl-C, then stop."""
        try:
            while not self._ended.wait(LOOK):  # an event, because Python 3.11 treats a thread with an interrupted `join` as ended
                pass
        except KeyboardInterrupt:
            self.stop()

    def stop(self) -> None:
        """Stop the server and its worker processes."""
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
    """Open an interactive page with a run and a slider per number, like `hwsim explore`; needs the extra [explore].

    The explorer runs until the calling program ends; `explore(...).wait()` waits for Ctrl-C.

    Args:
        machine: machine, as for `hwsim.simulate`.
        workload: workload, as for `hwsim.simulate`.
        set: initial settings, by path.
        port: TCP port on this computer; 0: any free port.
        browser: whether to open the page in a browser.
        allow: folders, besides the library, from which the files in the page may include others.
        state: part of a shared address after the #, or the whole address.

    Raises:
        SpecError: a file does not exist.
        OSError: the port is in use.
        ModuleNotFoundError: the extra is not installed.
    """
    fork_server.begin()  # concurrently with the imports of this process
    try:
        from hwsim.explorer import server
        from hwsim.explorer.opened import opened
        from hwsim.explorer.workers import Limits, Workers
    except ModuleNotFoundError as missing:
        message = f"the explorer needs {missing.name}: pip install 'hwsim[explore]'"
        raise ModuleNotFoundError(message, name=missing.name) from None
    settings = {path: value if isinstance(value, str) else json.dumps(value) for path, value in (set or {}).items()}
    first = opened(machine, workload, settings)
    line = socket.create_server(("127.0.0.1", port))
    session, token = line.getsockname()[1], secrets.token_urlsafe(24)
    workers, ready, ended = Workers(tuple(map(str, allow)), Limits()), threading.Event(), threading.Event()
    running = server.ExplorerServer(server.application(token, session, first, workers=workers, ready=ready.set), line, workers)
    threading.Thread(target=_run, args=(running, ended), name="hwsim explore", daemon=True).start()
    while not ready.wait(LOOK) and not ended.is_set():
        pass
    address = f"http://127.0.0.1:{session}/?token={token}" + (f"#{state.rpartition('#')[2]}" if state else "")
    explorer = Explorer(address, ended, running.end)
    if browser:
        webbrowser.open(address)
    return explorer
