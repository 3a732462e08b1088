"""A model server for agents that somebody else wrote: it answers Chat Completions and Responses, and says what a
model would that delegates over MCP: create a sub-agent, steer it, wait for it, read its result, answer. It keeps no
state: how far a conversation is stands in the conversation."""

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

STEPS = ["create", "send", "wait", "read_events"]


def arguments(step, session):
    if step == "create":
        return {"name": "looker", "initial_message": "Look at the file."}
    if step == "send":
        return {"session_id": session, "text": "Look at the folder too.", "immediacy": "immediate"}
    if step == "wait":
        return {"session_id": session, "wait_for_idle": True, "timeout_seconds": 30}
    return {"session_id": session, "event_types": ["assistant"]}


def session_in(text):
    """The id that the first result names."""
    marks = text.replace("\\", "")
    place = marks.find('"session_id"')
    if place < 0:
        return None
    rest = marks[place + len('"session_id"'):]
    return rest.split('"')[1]


class Model(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    seen = []

    def log_message(self, *_):
        pass

    def do_GET(self):
        body = json.dumps({"object": "list", "data": [{"id": "stub", "object": "model"}]}).encode()
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_POST(self):
        length = int(self.headers.get("content-length", 0))
        request = json.loads(self.rfile.read(length) or b"{}")
        Model.seen.append(request)
        if self.path.endswith("/responses"):
            self.answer_responses(request)
        else:
            self.answer_chat(request)

    def next_step(self, results, offered):
        """The next call, or the last words. `results` are the texts of our calls' results by step."""
        for step in STEPS:
            name = next((it for it in offered if it.endswith("agent_session_" + step)), None)
            if name and step not in results:
                return name, step
        return None, None

    def stream(self, events):
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.send_header("connection", "close")
        self.end_headers()
        for event in events:
            self.wfile.write(event.encode())
            self.wfile.flush()
        self.close_connection = True

    def answer_chat(self, request):
        offered = [it["function"]["name"] for it in request.get("tools", []) if "function" in it]
        results = {}
        for message in request.get("messages", []):
            if message.get("role") == "tool":
                step = message.get("tool_call_id", "").removeprefix("call_")
                content = message.get("content")
                results[step] = content if isinstance(content, str) else json.dumps(content)
        name, step = self.next_step(results, offered)
        if step:
            call = arguments(step, session_in(results.get("create", "")))
            function = {"name": name, "arguments": json.dumps(call)}
            entry = {"index": 0, "id": "call_" + step, "type": "function", "function": function}
            delta, reason = {"role": "assistant", "tool_calls": [entry]}, "tool_calls"
        else:
            delta, reason = {"role": "assistant", "content": last_words(results)}, "stop"
        usage = {"prompt_tokens": 10, "completion_tokens": 2, "total_tokens": 12}
        base = {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "stub"}
        if not request.get("stream"):
            whole = {k: v for k, v in delta.items()}
            whole.setdefault("content", None)
            for call in whole.get("tool_calls", []):
                call.pop("index", None)
            body = {**base, "object": "chat.completion", "usage": usage,
                    "choices": [{"index": 0, "message": whole, "finish_reason": reason}]}
            data = json.dumps(body).encode()
            self.send_response(200)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)
            return
        chunks = [
            {**base, "choices": [{"index": 0, "delta": delta, "finish_reason": None}]},
            {**base, "choices": [{"index": 0, "delta": {}, "finish_reason": reason}]},
            {**base, "choices": [], "usage": usage},
        ]
        self.stream([f"data: {json.dumps(chunk)}\n\n" for chunk in chunks] + ["data: [DONE]\n\n"])

    def answer_responses(self, request):
        # Codex offers a server's tools inside a namespace of its own; others offer them flat.
        offered, spaces = [], {}
        for tool in request.get("tools", []):
            if tool.get("type") == "namespace":
                for inner in tool.get("tools", []):
                    offered.append(inner["name"])
                    spaces[inner["name"]] = tool["name"]
            elif tool.get("type") == "function":
                offered.append(tool["name"])
        results = {}
        for item in request.get("input", []):
            if isinstance(item, dict) and item.get("type") == "function_call_output":
                step = item.get("call_id", "").removeprefix("call_")
                output = item.get("output")
                results[step] = output if isinstance(output, str) else json.dumps(output)
        name, step = self.next_step(results, offered)
        if step:
            call = arguments(step, session_in(results.get("create", "")))
            item = {"type": "function_call", "id": "fc_" + step, "call_id": "call_" + step,
                    "name": name, "arguments": json.dumps(call), "status": "completed"}
            if name in spaces:
                item["namespace"] = spaces[name]
        else:
            text = {"type": "output_text", "text": last_words(results), "annotations": []}
            item = {"type": "message", "id": "m", "role": "assistant", "status": "completed", "content": [text]}
        response = {"id": "r", "object": "response", "status": "completed", "model": "stub", "output": [item],
                    "usage": {"input_tokens": 10, "output_tokens": 2, "total_tokens": 12,
                              "input_tokens_details": {"cached_tokens": 0},
                              "output_tokens_details": {"reasoning_tokens": 0}}}
        events = [
            {"type": "response.created", "response": {**response, "status": "in_progress", "output": []}},
            {"type": "response.output_item.added", "output_index": 0, "item": item},
            {"type": "response.output_item.done", "output_index": 0, "item": item},
            {"type": "response.completed", "response": response},
        ]
        self.stream([f"event: {it['type']}\ndata: {json.dumps(it)}\n\n" for it in events])


def last_words(results):
    read = results.get("read_events", "")
    if "The file and the folder were looked at." in read:
        return "WALK-DONE: the sub-agent looked at the file and the folder."
    return "WALK-FAILED: " + json.dumps(results)[:2000] if results else "ok"


def serve():
    """Starts the server on a free port of loopback; the answer is its address."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), Model)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return f"http://127.0.0.1:{server.server_port}/v1"
