"""Telling people of a verdict: by a command and by a web hook, never in the watcher's way."""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest

from tests.patience import LONG_SECONDS, eventually
from whyhang.collectors.procfs import read_stat
from whyhang.engine import notify
from whyhang.engine.notify import Notifier, environ_of
from whyhang.schemas.config import OnHangConfig
from whyhang.schemas.rankset import RankSet
from whyhang.schemas.verdict import Suspects, Verdict
from whyhang.schemas.verdict_codec import encode_verdict

VERDICT = Verdict(
    verdict="local_hang",
    category="disk_io",
    confidence="high",
    headline="rank 3 reads; `rm -rf /`\n$(boom)",
    print_id="1780890495107774003",
    suspects=Suspects(ranks=RankSet([3])),
)


class Hook(BaseHTTPRequestHandler):
    """Keeps what is posted."""

    bodies: list[bytes] = []  # noqa: RUF012 (the server makes the instances)

    def do_POST(self) -> None:
        """Take a body; an address that ends in ``no`` refuses."""
        self.bodies.append(self.rfile.read(int(self.headers["Content-Length"])))
        self.send_response(500 if self.path.endswith("no") else 200)
        self.end_headers()

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing."""


@pytest.fixture
def hook() -> Iterator[str]:
    """A web hook's address."""
    Hook.bodies.clear()
    server = HTTPServer(("127.0.0.1", 0), Hook)
    thread = threading.Thread(target=server.serve_forever, args=(0.05,))
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}/hook"
    server.shutdown()
    thread.join()
    server.server_close()


def tell(config: OnHangConfig, tmp_path: Path, *, seconds: float = 30.0) -> str:
    """Notify, wait, and answer what our log says."""
    journal = os.open(tmp_path / "journal", os.O_RDWR | os.O_CREAT | os.O_APPEND)
    notifier = Notifier(config, journal)
    assert notifier.is_wanted
    notifier.tell(VERDICT, event="hang", place=tmp_path / "place", spool=tmp_path / "spool")
    notifier.wait(seconds)
    os.close(journal)
    return (tmp_path / "journal").read_text()


@pytest.mark.integration
def test_the_command_gets_verdict_and_environment(tmp_path: Path) -> None:
    """The verdict stands on its stdin, the rest in WHYHANG_*, in a session of its own."""
    (tmp_path / "place").mkdir()
    (tmp_path / "place" / "verdict.json").write_bytes(encode_verdict(VERDICT))
    out = tmp_path / "out"
    command = f"cat > {out}.json; env -0 > {out}.env; cut -d' ' -f6 /proc/self/stat > {out}.session"
    assert tell(OnHangConfig(notify_run=command), tmp_path) == ""
    assert json.loads(Path(f"{out}.json").read_text())["headline"] == VERDICT.headline
    environ = dict(
        item.partition("=")[::2] for item in Path(f"{out}.env").read_text().split("\0") if item
    )
    assert environ["WHYHANG_HEADLINE"] == VERDICT.headline
    assert environ["WHYHANG_PRINT_ID"] == VERDICT.print_id
    assert environ["WHYHANG_PATH"] == str(tmp_path / "place")
    assert environ["WHYHANG_RANKS"] == "3"
    # A job's marker would have the command killed with a job that is stopped.
    assert "WHYHANG_JOB" not in environ_of(VERDICT, "hang")
    assert int(Path(f"{out}.session").read_text()) != os.getsid(0)


@pytest.mark.integration
def test_a_store_that_hangs_leaves_the_spool(tmp_path: Path) -> None:
    """Where the reports do not come to the store, the command is told of the spool."""
    place, spool = tmp_path / "place", tmp_path / "spool"
    os.mkfifo(tmp_path / "verdict.json")  # opening it hangs
    before = notify.SETTLE_SECONDS
    notify.SETTLE_SECONDS = 0.5
    try:
        assert notify.settled(tmp_path, spool, b"x") == spool
        assert notify.settled(place, spool, b"x") == spool
    finally:
        notify.SETTLE_SECONDS = before
        # Let the thread that opens it go.
        os.close(os.open(tmp_path / "verdict.json", os.O_RDWR))


@pytest.mark.integration
def test_a_failing_command_is_noted(tmp_path: Path) -> None:
    """Its status and last words stand in our log."""
    (tmp_path / "place").mkdir()
    (tmp_path / "place" / "verdict.json").write_bytes(encode_verdict(VERDICT))
    said = tell(OnHangConfig(notify_run="echo no such server >&2; exit 3"), tmp_path)
    assert said == "notify: the command ended with status 3: no such server\n"


@pytest.mark.integration
def test_a_command_that_never_ends_is_ended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After its time it is killed with what it started."""
    monkeypatch.setattr(notify, "RUN_SECONDS", 2.0)
    pid_file = tmp_path / "pid"
    said = notify.run(f"sleep 600 & echo $! > {pid_file}; wait", "{}", {})
    assert said is not None
    assert "took more than 2 s" in said
    child = int(pid_file.read_text())
    assert eventually(lambda: (stat := read_stat(child)) is None or stat.state == "Z")


@pytest.mark.integration
def test_telling_does_not_wait(tmp_path: Path) -> None:
    """The watcher goes on at once, however long the command takes."""
    journal = os.open(os.devnull, os.O_WRONLY)
    gate, done = tmp_path / "gate", tmp_path / "done"
    os.mkfifo(gate)
    notifier = Notifier(OnHangConfig(notify_run=f"cat {gate}; touch {done}"), journal)
    (tmp_path / "verdict.json").write_bytes(encode_verdict(VERDICT))
    notifier.tell(VERDICT, event="hang", place=tmp_path, spool=tmp_path)
    notifier.wait(0.2)
    assert not done.exists()
    gate.write_text("")
    notifier.wait(LONG_SECONDS)
    assert done.exists()
    os.close(journal)


def test_the_web_hook_gets_json(hook: str) -> None:
    """The verdict with a text for chat services; a refusal is told."""
    environ = {**environ_of(VERDICT, "changed"), "WHYHANG_PATH": "/store/1"}
    verdict = json.loads(encode_verdict(VERDICT))
    assert notify.post(hook, verdict, environ) is None
    body = json.loads(Hook.bodies[0])
    assert body["suspects"]["rank_list"] == [3]
    assert body["text"].startswith("whyhang: local_hang: rank 3")
    assert (body["event"], body["path"]) == ("changed", "/store/1")
    assert "500" in (notify.post(f"{hook}/no", verdict, environ) or "")


def test_only_web_addresses_are_posted_to() -> None:
    """A file is no web hook."""
    environ = {**environ_of(VERDICT, "hang"), "WHYHANG_PATH": "/store/1"}
    assert "http://" in (notify.post("file:///etc/passwd", {}, environ) or "")
