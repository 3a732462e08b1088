"""A model server whose answers come piece by piece, each when the walk lets it: what is under way is under way for as
long as it takes to cut something."""

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class Stub:
    """Answers by the last thing that was said to the model: the pieces of `answers`."""

    def __init__(self, answers):
        self.answers = answers
        self.gates = {piece: threading.Event() for pieces in answers.values() for piece in pieces}
        self.server = ThreadingHTTPServer(("127.0.0.1", 0), self.handler())
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        self.url = f"http://127.0.0.1:{self.server.server_port}/v1"

    def let(self, *pieces):
        """Lets pieces go."""
        for piece in pieces:
            self.gates[piece].set()

    def handler(stub):
        class Handler(BaseHTTPRequestHandler):
            def log_message(self, *_):
                pass

            def do_POST(self):
                request = json.loads(self.rfile.read(int(self.headers["content-length"])))
                said = [it["content"] for it in request["messages"] if it["role"] == "user"][-1]
                said = said if isinstance(said, str) else said[0]["text"]
                pieces = next(those for text, those in stub.answers.items() if text in said)
                self.send_response(200)
                self.send_header("content-type", "text/event-stream")
                self.end_headers()
                try:
                    for piece in pieces:
                        stub.gates[piece].wait()
                        self.say({"choices": [{"index": 0, "delta": {"content": piece}}]})
                    self.say({"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]})
                    self.wfile.write(b"data: [DONE]\n\n")
                except OSError:
                    pass  # Whoever asked is gone.

            def say(self, chunk):
                chunk = {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m", **chunk}
                self.wfile.write(f"data: {json.dumps(chunk)}\n\n".encode())
                self.wfile.flush()

        return Handler
