"""A server on loopback that answers each request with the bytes that a test chooses."""

from __future__ import annotations

import contextlib
import json
import socketserver
import threading
from typing import Callable, Iterator, Optional

AnswerFunction = Callable[["Connection"], None]


def event(**members: object) -> bytes:
    return b"data: " + json.dumps(members).encode() + b"\n\n"


def text_event(text: str, reason: Optional[str] = None) -> bytes:
    return event(choices=[{"index": 0, "text": text, "finish_reason": reason}])


RESPONSE_HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n"
USAGE_EVENT = event(choices=[], usage={"prompt_tokens": 11, "completion_tokens": 3})
DONE_EVENT = b"data: [DONE]\n\n"
GOOD_ANSWER = RESPONSE_HEAD + text_event(" a") + text_event(" b") + text_event(" c", "length") + USAGE_EVENT + DONE_EVENT


class Connection(socketserver.StreamRequestHandler):
    """Reads a request and answers it."""

    def handle(self) -> None:
        self.method, self.path, _ = self.rfile.readline().decode().split()
        self.headers: dict[str, str] = {}
        while (line := self.rfile.readline().strip()) != b"":
            name, _, value = line.decode().partition(":")
            self.headers[name.lower()] = value.strip()
        body = self.rfile.read(int(self.headers.get("content-length", 0)))
        self.body = json.loads(body) if body else None
        self.server.requests.append(self)  # type: ignore[attr-defined]
        with contextlib.suppress(OSError):  # the client has gone
            self.server.answer(self)  # type: ignore[attr-defined]

    def send(self, data: bytes) -> None:
        self.wfile.write(data)
        self.wfile.flush()

    def wait_for_client(self) -> None:
        """Until the client closes the connection."""
        with contextlib.suppress(OSError):
            while self.rfile.read(1):
                pass


class FakeEndpoint(socketserver.ThreadingTCPServer):
    daemon_threads = True
    allow_reuse_address = True
    request_queue_size = 128

    def __init__(self, answer: AnswerFunction) -> None:
        super().__init__(("127.0.0.1", 0), Connection)
        self.answer = answer
        self.requests: list[Connection] = []

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}/v1"


@contextlib.contextmanager
def serving(answer: AnswerFunction) -> Iterator[FakeEndpoint]:
    with FakeEndpoint(answer) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join()


def answer_with_bytes(data: bytes) -> AnswerFunction:
    return lambda connection: connection.send(data)


def answer_with_models(answer: AnswerFunction) -> AnswerFunction:
    """Answers GET with a list of one model, and POST with `answer`."""
    body = json.dumps({"data": [{"id": "listed"}]}).encode()
    head = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n" % len(body)
    return lambda connection: connection.send(head + body) if connection.method == "GET" else answer(connection)
