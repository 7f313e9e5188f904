"""The explorer's server: whom it answers, what it refuses, and that nothing that is sent to it makes it stop."""

from __future__ import annotations

import asyncio
import contextlib
import http.client
import json
import os
import random
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import AsyncIterator, Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import pytest
import uvicorn

import hwsim
from hwsim.explorer import server
from hwsim.explorer.opened import opened
from hwsim.explorer.worker import WorkerState
from hwsim.explorer.workers import Limits, RequestRefused, Workers
from tests.test_explore_answers import JUNK, MACHINE, WORKLOAD, texts

TOKEN: Final = "a-token-of-this-test"
PORT: Final = 8123  # nothing listens: requests are made inside this process
HOST: Final = f"127.0.0.1:{PORT}"
LONG: Final = {"set": {"times": "1000000"}}  # seconds on any computer


class Inline(Workers):
    """Answers in this process."""

    def __init__(self) -> None:
        self.desk = WorkerState(())

    async def start(self) -> None: ...
    def stop(self) -> None: ...

    async def ask(self, door: str, said: Mapping[str, Any]) -> bytes:
        if door not in ("run", "sliders", "file"):
            raise KeyError(door)
        status, text = self.desk.answered(door, said)
        if status != 200:
            raise RequestRefused(text.decode(), status)
        return text


class Answer:
    def __init__(self) -> None:
        self.status, self.headers, self.body = 0, dict[str, str](), b""


@pytest.fixture(scope="module")
def app() -> server.Application:
    return server.application(TOKEN, PORT, opened(MACHINE, WORKLOAD, {"n": "9"}), workers=Inline())


def request(
    app: server.Application, method: str, path: str, headers: Mapping[str, str], body: bytes = b"", query: bytes = b""
) -> Answer:
    """One request, as a server would hand it over."""
    answer, chunks = Answer(), [body[index : index + 65536] for index in range(0, len(body), 65536)] or [b""]
    rows = [(name.lower().encode("latin-1"), value.encode("latin-1", "replace")) for name, value in headers.items()]
    scope = {"type": "http", "method": method, "path": path, "raw_path": path.encode("utf-8", "replace"), "query_string": query,
             "headers": rows, "http_version": "1.1", "scheme": "http", "server": ("127.0.0.1", PORT), "client": ("127.0.0.1", 9),
             "root_path": "", "asgi": {"version": "3.0"}}  # fmt: skip

    async def receive() -> dict[str, Any]:
        return (
            {"type": "http.request", "body": chunks.pop(0), "more_body": bool(chunks)} if chunks else {"type": "http.disconnect"}
        )

    async def send(message: Mapping[str, Any]) -> None:
        if message["type"] == "http.response.start":
            answer.status = message["status"]
            answer.headers = {name.decode(): value.decode("latin-1") for name, value in message["headers"]}
        else:
            answer.body += message.get("body", b"")

    asyncio.run(app(scope, receive, send))  # type: ignore[arg-type]
    return answer


OURS: Final = {"host": HOST, "cookie": f"hwsim-{PORT}={TOKEN}", "content-type": "application/json"}


def asked(app: server.Application, door: str, said: object, **headers: str) -> Answer:
    return request(app, "POST", f"/ask/{door}", OURS | headers, json.dumps(said).encode())


def test_the_token_becomes_a_cookie_and_leaves_the_address(app: server.Application) -> None:
    first = request(app, "GET", "/", {"host": HOST}, query=f"token={TOKEN}".encode())
    assert (first.status, first.headers["location"]) == (303, "/")
    cookie = first.headers["set-cookie"]
    assert cookie.startswith(f"hwsim-{PORT}={TOKEN};")
    assert "HttpOnly" in cookie
    assert "SameSite=strict" in cookie
    page = request(app, "GET", "/", {"host": HOST, "cookie": cookie.partition(";")[0]})
    assert page.status == 200
    policy = page.headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    assert b"NONCE" not in page.body
    assert (
        request(app, "GET", "/", {"host": HOST, "cookie": f"hwsim-{PORT}={TOKEN}"}).headers["content-security-policy"] != policy
    )


@pytest.mark.parametrize(
    ("change", "status"),
    [
        ({}, 200),
        ({"origin": f"http://{HOST}"}, 200),
        ({"host": f"localhost:{PORT}", "sec-fetch-site": "same-origin"}, 200),
        ({"content-type": "application/json; charset=utf-8"}, 200),
        ({"host": "evil.example"}, 403),
        ({"host": "127.0.0.1"}, 403),
        ({"host": f"evil.example:{PORT}"}, 403),
        ({"origin": "http://evil.example"}, 403),
        ({"origin": "null"}, 403),
        ({"origin": f"https://{HOST}"}, 403),
        ({"sec-fetch-site": "cross-site"}, 403),
        ({"sec-fetch-site": "same-site"}, 403),
        ({"cookie": ""}, 401),
        ({"cookie": f"hwsim-{PORT}={TOKEN}x"}, 401),
        ({"cookie": f"hwsim-{PORT}=\u00fc"}, 401),
        ({"cookie": f"hwsim-{PORT + 1}={TOKEN}"}, 401),
        ({"content-type": "text/plain"}, 415),
        ({"content-type": "application/x-www-form-urlencoded"}, 415),
    ],
)
def test_only_the_page_itself_is_answered(app: server.Application, change: dict[str, str], status: int) -> None:
    answer = asked(app, "opened", {}, **change)
    assert answer.status == status
    assert not any(name.startswith("access-control") for name in answer.headers)
    if status == 200:
        assert json.loads(answer.body)["set"] == {"n": "9"}
    else:
        assert b"hwsim: machine/1" not in answer.body


@pytest.mark.parametrize(
    "path",
    ["/page/../doors.py", "/page/..%2fdoors.py", "/page/%2e%2e/doors.py", "/page//etc/passwd", "/page/doors.py", "/etc/passwd",
     "/page/index.html\x00.js", "/page/.", "/ask/run/../file", "/page/codemirror.toml"],
)  # fmt: skip
def test_no_other_file_is_served(app: server.Application, path: str) -> None:
    assert request(app, "GET", path, OURS).status in (404, 405)


def test_bodies_are_bounded(app: server.Application) -> None:
    assert request(app, "POST", "/ask/run", OURS, b"x" * (server.LARGEST + 1)).status == 413
    for body in (b"", b"[]", b"nul", b"{", b"[" * 100_000, b'{"a":' * 30_000, b"\xff\xfe", b'"text"'):
        assert request(app, "POST", "/ask/run", OURS, body).status == 400
    assert asked(app, "nothing", {}).status == 404
    assert request(app, "GET", "/ask/run", OURS).status == 405


def test_a_body_that_does_not_come_is_not_waited_for(app: server.Application, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server, "SLOWEST", 0.05)

    async def slow() -> list[int]:
        found: list[int] = []

        async def receive() -> dict[str, Any]:
            await asyncio.sleep(60)
            return {}

        async def send(message: Mapping[str, Any]) -> None:
            found.extend([message["status"]] if "status" in message else [])

        rows = [(name.encode(), value.encode()) for name, value in OURS.items()]
        scope = {
            "type": "http",
            "method": "POST",
            "path": "/ask/run",
            "query_string": b"",
            "headers": rows,
            "server": ("127.0.0.1", PORT),
        }
        await app(scope, receive, send)
        return found

    assert asyncio.run(slow()) == [408]


def test_a_thousand_hostile_requests_leave_it_answering(app: server.Application) -> None:
    dice = random.Random(7)
    names = ["host", "origin", "cookie", "sec-fetch-site", "content-type", "x-forwarded-host", "referer", "content-length"]
    values = [
        "",
        "null",
        "evil.example",
        HOST,
        f"hwsim-{PORT}=",
        f"hwsim-{PORT}={TOKEN}",
        "application/json",
        "\u00ff" * 50,
        "cross-site",
        "-1",
    ]
    paths = [
        "/",
        "/ask/run",
        "/ask/curve",
        "/ask/sliders",
        "/ask/../run",
        "/page/app.js",
        "/page/../../etc/passwd",
        "/%00",
        "//",
        "/ask/file",
    ]
    counts = dict[int, int]()
    for _ in range(1000):
        headers = dict(OURS) if dice.random() < 0.7 else {"host": HOST}
        for _ in range(dice.randrange(3)):
            headers[dice.choice(names)] = dice.choice(values)
        said = texts() | {
            "file": "machine",
            dice.choice(["machine", "workload", "set", "file"]): dice.choice(JUNK),
        }
        whole = json.dumps(said).encode()
        body = dice.choice([whole, whole[: dice.randrange(len(whole))], dice.randbytes(300), b""])
        query = dice.choice([b"", b"token=", b"token=" + b"x" * 5000, b"token=%ff%fe", b"a=b&token[]=1"])
        answer = request(
            app, dice.choice(["GET", "POST", "POST", "POST", "PUT", "HEAD", "OPTIONS"]), dice.choice(paths), headers, body, query
        )
        counts[answer.status] = counts.get(answer.status, 0) + 1
        assert answer.status in (200, 400, 401, 403, 404, 405, 415), answer.body
        assert b"root:" not in answer.body
    assert min(counts[status] for status in (200, 400, 401, 403, 404)) > 20
    assert asked(app, "run", texts()).status == 200


# ---- processes


@contextlib.asynccontextmanager
async def workers(limits: Limits) -> AsyncIterator[Workers]:
    found = Workers((), limits)
    await found.start()
    try:
        yield found
    finally:
        found.stop()


def test_what_takes_too_long_is_killed_and_the_next_is_answered() -> None:
    async def tried() -> None:
        async with workers(Limits(seconds=1.0, memory=3 << 30, longer=1000.0)) as found:
            page = texts() | {"page": "one"}
            assert json.loads(await found.ask("run", page))["seconds"] > 0
            long = json.loads(await found.ask("run", page | LONG))
            assert long["mistakes"][0]["text"] == "stopped after 1 s of CPU time"
            assert json.loads(await found.ask("run", page))["seconds"] > 0, "the process that stood by"
            with pytest.raises(KeyError):
                await found.ask("nothing", {})
            with pytest.raises(RequestRefused, match="'machine': expected a text"):
                await found.ask("run", {})

    asyncio.run(tried())


def test_what_is_kept_from_computing_is_killed_by_the_clock() -> None:
    async def tried() -> None:
        async with workers(Limits(seconds=60.0, memory=3 << 30, longer=0.01)) as found:
            long = json.loads(await found.ask("run", texts() | LONG))
            assert "because other programs use the CPUs" in long["mistakes"][0]["text"]

    asyncio.run(tried())


def test_a_newer_run_ends_an_old_one_and_one_that_waits() -> None:
    async def tried() -> None:
        async with workers(Limits(seconds=60.0, memory=3 << 30)) as found:
            page = texts() | {"page": "one"}
            old = asyncio.create_task(found.ask("run", page | LONG))
            await asyncio.sleep(0.2)
            waiting = asyncio.create_task(found.ask("run", page | {"set": {"n": "5"}}))
            await asyncio.sleep(0.1)
            other = asyncio.create_task(found.ask("run", page | {"page": "another", "set": {"n": "7"}}))
            newest = asyncio.create_task(found.ask("run", page | {"set": {"n": "6"}}))
            answers = [json.loads(await task) for task in (old, waiting, newest, other)]
            assert [answer.get("stale", False) for answer in answers] == [True, True, False, False]
            assert answers[2]["settings"] == [["n", "6"]]
            assert answers[3]["settings"] == [["n", "7"]]

    asyncio.run(tried())


@pytest.mark.skipif(sys.platform != "linux", reason="other systems do not bound a process's memory")
def test_memory_is_bounded() -> None:
    async def tried() -> None:
        async with workers(Limits(seconds=60.0, memory=100 << 20)) as found:
            large = json.loads(await found.ask("run", texts() | LONG))
            assert "memory" in large["mistakes"][0]["text"]
            assert json.loads(await found.ask("run", texts()))["seconds"] > 0

    asyncio.run(tried())


# ---- over sockets


class Started:
    """`hwsim explore` in a process of its own."""

    def __init__(self, *arguments: str) -> None:
        command = [sys.executable, "-m", "hwsim", "explore", "--no-open", *arguments]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        assert self.process.stdout is not None
        self.address = self.process.stdout.readline().strip()
        self.port = int(self.address.partition("127.0.0.1:")[2].partition("/")[0])
        self.token = self.address.partition("token=")[2].partition("#")[0]
        self.headers = {"Cookie": f"hwsim-{self.port}={self.token}", "Content-Type": "application/json"}

    def asked(self, door: str, said: object) -> Any:
        line = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        line.request("POST", f"/ask/{door}", json.dumps(said), self.headers)
        answer = line.getresponse()
        text = answer.read()
        line.close()
        assert answer.status == 200, text
        return json.loads(text)

    def end(self, how: signal.Signals = signal.SIGINT) -> int:
        self.process.send_signal(how)
        code = self.process.wait(20)
        if self.process.stdout is not None:
            self.process.stdout.close()
        return code


@pytest.fixture
def started(heard: None) -> Iterator[Started]:
    found = Started(MACHINE, WORKLOAD, "--set", "times=7")
    yield found
    if found.process.poll() is None:
        found.end(signal.SIGKILL)


@pytest.mark.skipif(os.name == "nt", reason="signals are others there")
def test_over_sockets_it_answers_beside_what_is_broken(started: Started) -> None:
    opened = started.asked("opened", {})
    state = {key: opened[key] for key in ("machine", "workload", "set", "called")}
    before = started.asked("run", state)
    assert before["ops"] == 14
    half = [socket.create_connection(("127.0.0.1", started.port)) for _ in range(50)]
    for number, line in enumerate(half):
        line.sendall([b"POST /ask/run HTTP/1.1\r\nHost: 127", b"\x16\x03\x01" * 30, b"GET " + b"/" * 3000, b""][number % 4])
    raw = [
        b"\x00" * 500 + b"\r\n\r\n",
        b"GET / HTTP/9.9\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n",
        b"POST /ask/run HTTP/1.1\r\nHost: x\r\nContent-Length: -5\r\n\r\n",
        b"GET / HTTP/1.1\r\nX: " + b"y" * 100_000,
    ]
    for sent in raw:
        with socket.create_connection(("127.0.0.1", started.port), timeout=20) as line, contextlib.suppress(ConnectionError):
            line.sendall(sent)
            assert line.recv(4096).startswith(b"HTTP/1.1 4")
    assert started.asked("run", state)["seconds"] == before["seconds"]
    for line in half:
        line.close()
    assert started.end() == 0


@pytest.mark.skipif(os.name == "nt", reason="signals are others there")
def test_ctrl_c_says_nothing_while_a_run_is_computed(started: Started) -> None:
    opened = started.asked("opened", {})
    state = {key: opened[key] for key in ("machine", "workload", "called")} | LONG
    line = http.client.HTTPConnection("127.0.0.1", started.port, timeout=60)
    line.request("POST", "/ask/run", json.dumps(state), started.headers)
    assert started.asked("file", {"kind": "machine", "name": "d2l-laptop"}), "the run has begun"
    started.process.send_signal(signal.SIGINT)
    assert started.process.stdout is not None
    assert started.process.stdout.read() == "open it in a browser of this computer; Ctrl-C ends it\n"
    started.process.stdout.close()
    assert started.process.wait(20) == 0
    answer = line.getresponse()
    assert (answer.status, answer.read()) == (503, b"the explorer has been stopped")
    line.close()


def test_from_python_it_goes_on_beside_the_program() -> None:
    busy = {"busy": {"name": "a", "device": "cpu", "time": "$n * 1 ms"}}
    program = {"hwsim": "workload/1", "let": {"n": 1}, "program": [busy]}
    found = hwsim.explore("d2l-laptop", program, set={"n": 2}, browser=False)
    try:
        port = int(found.address.partition("127.0.0.1:")[2].partition("/")[0])
        cookie = f"hwsim-{port}={found.address.partition('token=')[2]}"
        line = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
        line.request("POST", "/ask/opened", "{}", {"Cookie": cookie, "Content-Type": "application/json"})
        opened = json.loads(line.getresponse().read())
        line.request("POST", "/ask/run", json.dumps(opened), {"Cookie": cookie, "Content-Type": "application/json"})
        assert json.loads(line.getresponse().read())["seconds"] == hwsim.simulate("d2l-laptop", program, set={"n": 2}).makespan_s
        line.close()
        assert found.address in found._repr_html_()
        with pytest.raises(OSError, match="in use"):
            hwsim.explore(port=port, browser=False)
    finally:
        found.stop()
    found.wait()
    with pytest.raises(ConnectionError):
        socket.create_connection(("127.0.0.1", port), timeout=20)


@pytest.mark.skipif(os.name == "nt", reason="signals are others there")
def test_killed_and_started_again_the_address_has_the_state(started: Started) -> None:
    """The page keeps the state behind the #, which no server sees: a new one needs nothing of the old one."""
    opened = started.asked("opened", {})
    state = {key: opened[key] for key in ("machine", "workload", "set", "called")} | {"set": {"times": "11"}}
    before = started.asked("run", state)
    left = _below(started.process.pid)
    assert sys.platform != "linux" or len(left) >= 4, "a server of processes, two that compute, one that stands by"
    started.end(signal.SIGKILL)
    again = Started("--state", "http://127.0.0.1:1/?token=x#1.abc_-", "laptop", "d2l/async-loop")
    assert again.address.endswith("#1.abc_-")
    assert again.token != started.token
    assert again.asked("run", state)["seconds"] == before["seconds"]
    assert again.end() == 0
    until = time.monotonic() + 30
    while left & _running():
        assert time.monotonic() < until, "processes outlive the server"
        time.sleep(0.1)


def _running() -> set[int]:
    """Processes that are not only waiting to be reaped; where the system says so."""
    return {process for process, (state, _) in _processes().items() if state != "Z"}


def _below(process: int) -> set[int]:
    """Children of a process, and theirs."""
    parents = {child: parent for child, (_, parent) in _processes().items()}
    found, fresh = set[int](), {process}
    while fresh:
        fresh = {child for child, parent in parents.items() if parent in fresh}
        found |= fresh
    return found


def _processes() -> dict[int, tuple[str, int]]:
    found = {}
    for file in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            state, parent = file.read_text("utf-8", "replace").rpartition(")")[2].split()[:2]
            found[int(file.parent.name)] = state, int(parent)
    return found


def test_half_a_request_is_not_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    """A connection whose request does not come is closed, so that they cannot fill the server."""
    monkeypatch.setattr(server, "SLOWEST", 0.2)

    async def app(scope: Any, receive: Any, send: Any) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"5")]})
        await send({"type": "http.response.body", "body": b"there"})

    line = socket.create_server(("127.0.0.1", 0))
    running = uvicorn.Server(
        uvicorn.Config(app, http=server.Patient, lifespan="off", log_level="error", ws="none", timeout_keep_alive=1)
    )
    thread = threading.Thread(target=lambda: asyncio.run(running.serve(sockets=[line])), daemon=True)
    thread.start()
    address = line.getsockname()
    try:
        with socket.create_connection(address, timeout=20) as slow, socket.create_connection(address, timeout=20) as idle:
            slow.sendall(b"GET / HTTP/1.1\r\nHost: x\r\nX")
            assert slow.recv(100) == b""
            assert idle.recv(100) == b""
        with socket.create_connection(address, timeout=20) as good:
            for _ in range(2):
                good.sendall(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
                found = b""
                while not found.endswith(b"there"):
                    more = good.recv(4096)
                    assert more
                    found += more
            assert good.recv(100) == b""
    finally:
        running.should_exit = True
        thread.join(20)
