"""Two viewers line by line and one over a WebSocket look at one session: the one's connection is pulled while an answer
streams, then the daemon is killed. All come back by themselves and agree.

usage: walk.py BINARY   (the environment must keep the state folder apart: ATTACHE_HOME, XDG_CONFIG_HOME)
"""

import asyncio
import json
import os
import signal
import socket
import subprocess
import sys
from pathlib import Path

from stub import Stub
from viewer import Viewer

ANSWERS = {
    "begin": ["I am ready."],
    "the first": ["alpha ", "beta ", "gamma."],
    "the second": ["second answer."],
    "the third": ["one ", "two."],
    "the fourth": ["fourth answer."],
}


class Seat:
    """A viewer line by line."""

    def __init__(self, process):
        self.process = process
        self.shown = ""
        self.more = asyncio.Condition()
        self.reading = asyncio.create_task(self.read())

    @classmethod
    async def at(cls, *call):
        pipe = asyncio.subprocess.PIPE
        out = asyncio.subprocess.STDOUT
        return cls(await asyncio.create_subprocess_exec(*call, stdin=pipe, stdout=pipe, stderr=out))

    async def read(self):
        while piece := await self.process.stdout.read(4096):
            async with self.more:
                self.shown += piece.decode(errors="replace")
                self.more.notify_all()

    def types(self, line):
        self.process.stdin.write(f"{line}\n".encode())

    async def shows(self, text):
        try:
            async with asyncio.timeout(30), self.more:
                await self.more.wait_for(lambda: text in self.shown)
        except TimeoutError:
            raise AssertionError(f"waited for {text!r}: {self.shown}") from None

    async def leaves(self):
        self.process.stdin.close()
        assert await self.process.wait() == 0, self.shown
        await self.reading
        return self.shown


def kebab(value):
    """The names of the wire for those of the command line."""
    if isinstance(value, dict):
        return {key.replace("_", "-"): kebab(it) for key, it in value.items()}
    return [kebab(it) for it in value] if isinstance(value, list) else value


def same(ours, theirs):
    """Whether two pictures of one thing agree in what both have; an absent member is as one without a value."""
    shared = ours.keys() & theirs.keys()
    assert len(shared) >= 6, (ours, theirs)
    return {key: (ours[key], theirs[key]) for key in shared if ours[key] != theirs[key]}


def prepare(stub):
    """The settings of the house: a provider that is the stub, and a listener however the daemon is started."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{free.getsockname()[1]}"
    folder = Path(os.environ["XDG_CONFIG_HOME"], "attache")
    folder.mkdir(parents=True)
    folder.joinpath("config.toml").write_text(
        f'[daemon]\nlisten = "{address}"\n[providers.stub]\nprofile = "ollama"\nbase_url = "{stub.url}"\n'
    )
    return address


async def walk(binary, stub, address):
    def attache(*arguments):
        return subprocess.run([binary, *arguments], check=True, capture_output=True, text=True).stdout

    started = attache("run", "--detach", "--json", "--model", "stub/m", "begin")
    session_id = json.loads(started)["session_id"]
    stub.let("I am ready.")
    attache("wait", session_id)
    token = attache("token", "create", "--scope", "write").strip()
    viewer = Viewer(f"ws://{address}/attach", token, session_id)
    first = await Seat.at(binary, "attach", session_id, "--plain")
    second = await Seat.at(binary, "attach", session_id, "--plain", "--read-only")
    picture = viewer.picture
    await viewer.until(lambda: picture.history, "a snapshot")
    assert picture.history[-1]["text"] == "I am ready.", picture.history

    def streams(text):
        return lambda: picture.running and picture.running["text"] == text

    def enqueue(text):
        queue, body = {"kind": "default"}, {"kind": "enqueue", "session-id": session_id}
        return {**body, "queue": queue, "text": text, "start": True, "environment": {}}

    # Its connection is pulled while an answer streams, before it has seen what became of its command.
    first.types("tell the first")
    stub.let("alpha ")
    await viewer.until(streams("alpha "), "the beginning of an answer")
    command = asyncio.create_task(viewer.command(enqueue("then the second"), pulled=True))
    stub.let("beta ")
    for seat in (first, second):
        await seat.shows("alpha beta ")
    await viewer.until(lambda: not viewer.plugged.is_set(), "the cut")
    assert not command.done() and viewer.connections == [False], viewer.connections
    viewer.plugged.set()
    accepted = await command
    assert accepted["kind"] == "accepted" and viewer.connections == [False, True], viewer.connections
    await viewer.until(streams("alpha beta "), "what came meanwhile")
    (waiting,) = [it for it in picture.queues if it["queue-id"] == "default"]
    assert [it["item-id"] for it in waiting["items"]] == [accepted["item-id"]], waiting
    stub.let("gamma.", "second answer.")
    for seat in (first, second):
        await seat.shows("second answer.\n")
    print("python: attach: a connection is pulled while an answer streams: ok")

    # The daemon is killed while another answer streams. Those line by line start it anew.
    host = (await viewer.command({"kind": "host-status"}))["host"]
    first.types("tell the third")
    stub.let("one ")
    await viewer.until(streams("one "), "the beginning of another answer")
    epoch = picture.epoch
    os.kill(host["process-id"], signal.SIGKILL)
    for seat in (first, second):
        await seat.shows("the host is there again")
    await viewer.until(lambda: len(viewer.connections) == 3, "the host")
    await viewer.until(lambda: picture.epoch != epoch, "a snapshot of what is left")
    assert viewer.connections[-1] is False and picture.session["status"] == "stopped", picture.session
    stub.let("two.", "fourth answer.")
    await viewer.command(enqueue("at last the fourth"))
    for seat in (first, second):
        await seat.shows("fourth answer.\n")
    print("python: attach: the daemon is killed while an answer streams: ok")

    attache("wait", session_id)
    shown = kebab(json.loads(attache("show", session_id, "--json")))
    await viewer.until(lambda: not same(picture.session, shown), f"{shown}")
    events = kebab(json.loads(attache("events", session_id, "--json", "--limit", "200")))["events"]
    assert len(events) == len(picture.history), (events, picture.history)
    for ours, theirs in zip(picture.history, events):
        assert not same(ours, theirs), same(ours, theirs)
    said = [it["text"] for it in picture.history if it["kind"] == "user"]
    assert said == ["begin", "tell the first", "then the second", "tell the third", "at last the fourth"], said
    answers = [it["text"] for it in picture.history if it["kind"] == "assistant" and not it["incomplete"]]
    assert answers == ["I am ready.", "alpha beta gamma.", "second answer.", "fourth answer."], answers
    for seat in (first, second):
        text = await seat.leaves()
        for answer in answers:
            assert text.count(answer) == 1, (answer, text)
    await viewer.leave()
    print(f"python: attach: all agree; {viewer.heard} frames fitted the schema")


if __name__ == "__main__":
    STUB = Stub(ANSWERS)
    try:
        asyncio.run(walk(sys.argv[1], STUB, prepare(STUB)))
    finally:
        # A daemon that listens does not leave by itself.
        LOCK = Path(os.environ["ATTACHE_HOME"], "daemon.lock")
        if LOCK.exists():
            os.kill(int(LOCK.read_text()), signal.SIGTERM)
