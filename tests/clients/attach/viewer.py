"""A viewer of one session, written from the schema of the attach protocol alone: it checks every frame that it says or
hears against it, keeps a picture of the session from snapshot and deltas, says commands again whose answer was lost with
a connection, and comes back to where it stood."""

import asyncio
import json
import socket
import struct
from pathlib import Path

import jsonschema
import websockets

SCHEMA = Path(__file__).resolve().parents[3] / "schemas/attach-agent-session.v1.json"


class Frames:
    """What frames must look like."""

    def __init__(self):
        schema = json.loads(SCHEMA.read_text())
        assert (schema["protocol"], schema["version"]) == ("attach-agent-session", 1)
        check = jsonschema.Draft202012Validator
        self.of_host = check(schema["from-host"])
        self.of_viewer = check(schema["from-viewer"])


class Picture:
    """The session as the host has told it, and nothing that it has not told."""

    def __init__(self):
        self.next = None
        self.epoch = None
        self.session = None
        self.history = []
        self.running = None
        self.queues = []
        self.detail = None
        self.ends = []

    def begin(self, snapshot):
        self.next = snapshot["sequence"]
        self.epoch = snapshot.get("epoch")
        (self.session,) = snapshot["sessions"]
        self.history = snapshot["history"]
        self.running = snapshot.get("running")
        self.queues = snapshot["queues"]
        self.detail = snapshot["detail"]

    def is_next(self, frame):
        """Whether a frame is the one that is wanted; a gap is an error, since no frame is lost on one connection."""
        assert frame["sequence"] <= self.next, (self.next, frame)
        if frame["sequence"] < self.next:
            return False
        self.next += 1
        return True

    def go_on(self, delta):
        if not self.is_next(delta):
            return
        if delta.get("epoch") != self.epoch:
            self.epoch, self.running = delta.get("epoch"), None
        patch = delta["patch"]
        topic = patch["topic"]
        if topic == "item-put":
            self.item(patch["item"])
        elif topic == "item-text":
            self.text(patch)
        elif topic == "session-put":
            self.session = patch["session"]
        elif topic == "queue-put":
            put(self.queues, "queue-id", patch["queue"])
        elif topic == "queue-gone":
            self.queues = [it for it in self.queues if it["queue-id"] != patch["queue-id"]]
        elif topic == "child-put":
            put(self.detail["children"], "session-id", patch["child"])
        elif topic == "modal-put":
            put(self.detail["modals"], "modal-id", patch["modal"])
        elif topic == "modal-gone":
            modals = self.detail["modals"]
            self.detail["modals"] = [it for it in modals if it["modal-id"] != patch["modal-id"]]
        else:
            what = topic.removesuffix("-put")
            assert what != topic and what in self.detail, delta
            self.detail[what] = patch[what]

    def item(self, item):
        if self.history and item["position"] <= self.history[-1]["position"]:
            return
        self.history.append(item)
        running = self.running
        if running and item.get("turn") == running["turn"]:
            if item["kind"] == "assistant":
                running["text"] = ""
            of_turn = [it for it in self.history if it.get("turn") == running["turn"]]
            settled = {it["call-id"] for it in of_turn if it["kind"] == "tool-result"}
            calls = [it for it in of_turn if it["kind"] == "tool-call"]
            running["calls"] = [it["name"] for it in calls if it["call-id"] not in settled]

    def text(self, patch):
        where = (patch["turn"], patch["step"])
        known = self.running and (self.running["turn"], self.running["step"])
        if known and where < known:
            return
        if where != known:
            self.running = {"turn": where[0], "step": where[1], "text": "", "calls": []}
        text, piece = self.running["text"].encode(), patch["text"].encode()
        if patch["offset"] <= len(text):
            self.running["text"] = (text + piece[len(text) - patch["offset"] :]).decode()


def put(those, key, this):
    """Replaces the one of the same id, or adds it behind the others."""
    for place, known in enumerate(those):
        if known[key] == this[key]:
            those[place] = this
            return
    those.append(this)


class Viewer:
    """See the module. `connections` is one entry each: whether the host went on where the viewer stood."""

    def __init__(self, url, token, session_id):
        self.url, self.token, self.session_id = url, token, session_id
        self.frames = Frames()
        self.picture = Picture()
        self.changed = asyncio.Condition()
        self.attachment = None
        self.pending = {}
        self.answers = {}
        self.made = 0
        self.socket = None
        self.connections = []
        # The connection is pulled when an answer to this command comes, and the answer is not looked at.
        self.pull_at = None
        # While it is not set, nobody connects.
        self.plugged = asyncio.Event()
        self.plugged.set()
        self.heard = 0
        self.life = asyncio.create_task(self.live())
        self.life.add_done_callback(lambda _: asyncio.ensure_future(self.tell()))

    async def live(self):
        """One connection after another, until somebody leaves."""
        while True:
            await self.plugged.wait()
            try:
                headers = {"Authorization": f"Bearer {self.token}"}
                async with websockets.connect(
                    self.url, additional_headers=headers, max_size=1 << 20, proxy=None
                ) as self.socket:
                    await self.hello()
                    await self.attach()
                    for command_id, body in list(self.pending.items()):
                        await self.say({"type": "command", "command-id": command_id, "body": body})
                    async for message in self.socket:
                        await self.hear(json.loads(message))
            except (OSError, websockets.WebSocketException):
                pass
            # The host may not be there again yet: this paces the tries and stands for nothing else.
            await asyncio.sleep(0.02)

    async def say(self, frame):
        self.frames.of_viewer.validate(frame)
        await self.socket.send(json.dumps(frame))

    async def hello(self):
        await self.say({"type": "hello", "version": 1, "features": [], "program": "viewer.py"})
        answer = json.loads(await self.socket.recv())
        self.frames.of_host.validate(answer)
        assert (answer["type"], answer["version"]) == ("hello", 1), answer

    def fresh(self):
        self.made += 1
        return f"python-{self.made}"

    async def attach(self):
        body = {"kind": "attach", "session-id": self.session_id}
        if self.attachment:
            place = {"epoch": self.picture.epoch, "sequence": self.picture.next}
            body["resume"] = {"attachment": self.attachment, "place": place}
        self.attaching = self.fresh()
        await self.say({"type": "command", "command-id": self.attaching, "body": body})

    async def hear(self, frame):
        self.frames.of_host.validate(frame)
        self.heard += 1
        if frame.get("command-id") == self.pull_at is not None:
            self.pull_at = None
            self.plugged.clear()
            pull(self.socket)
            await self.tell()
            return
        kind = frame["type"]
        about = frame.get("command-id")
        if kind == "snapshot":
            self.picture.begin(frame)
        elif kind == "delta":
            self.picture.go_on(frame)
        elif kind == "session-terminal":
            if self.picture.is_next(frame):
                self.picture.running = None
                self.picture.ends.append(frame["reason"])
                await self.attach()
        elif about and about == self.attaching:
            if kind == "answer":
                self.attachment = frame["body"]["attachment"]
                self.connections.append(frame["body"]["replays"])
            else:
                # What it comes back to is over: it looks at the session as it is now.
                assert frame["error"]["code"] == "unknown-session" and self.attachment, frame
                self.attachment = None
                await self.attach()
        elif about in self.pending:
            del self.pending[about]
            self.answers[about] = frame
        else:
            assert kind == "going-away" or about in self.answers, frame
        await self.tell()

    async def tell(self):
        async with self.changed:
            self.changed.notify_all()

    async def command(self, body, pulled=False):
        """Gives a command and waits for its answer, over as many connections as it takes."""
        command_id = self.fresh()
        self.pending[command_id] = body
        if pulled:
            self.pull_at = command_id
        try:
            await self.say({"type": "command", "command-id": command_id, "body": body})
        except websockets.WebSocketException:
            pass  # It is said again on the next connection.
        await self.until(lambda: command_id in self.answers, f"an answer to {body['kind']}")
        answer = self.answers[command_id]
        assert answer["type"] == "answer", answer
        return answer["body"]

    async def until(self, holds, what):
        """Waits until something holds of what was heard."""
        try:
            async with asyncio.timeout(30), self.changed:
                await self.changed.wait_for(lambda: holds() or self.life.done())
        except TimeoutError:
            raise AssertionError(f"waited for {what}: {vars(self.picture)}") from None
        if self.life.done():
            self.life.result()

    async def leave(self):
        self.life.cancel()
        await asyncio.gather(self.life, return_exceptions=True)


def pull(connection):
    """Cuts a connection as a cable would: no goodbye, and what is under way is lost."""
    raw = connection.transport.get_extra_info("socket")
    raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    connection.transport.abort()
