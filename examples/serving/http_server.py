# SPDX-License-Identifier: Apache-2.0
"""The example engine behind the HTTP interface of OpenAI: /v1/models, /v1/completions, /v1/chat/completions, with streams.
Accepts connections of this machine only.

    python examples/serving/http_server.py --port 8000
    joulemap bench serve --endpoint http://127.0.0.1:8000/v1 --rate 1,2,4

The network has random weights and no vocabulary: each word of a prompt is a token, and answers are numbers of tokens.
"""

from __future__ import annotations

import argparse
import itertools
import json
import queue
import threading
import time
import zlib
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Iterator, Optional

from engine import SHAPES, Engine, Request

MAX_BODY_BYTES = 16 << 20  # bytes
Token = tuple[int, bool]  # and whether it is the last one


class BadRequest(Exception):
    """The client asked for something that the server does not have."""


class EngineThread:
    """Runs the steps of an engine. The handlers of connections submit requests and receive their tokens in a queue."""

    def __init__(self, engine: Engine, name: str) -> None:
        self.engine, self.name = engine, name
        self._request_numbers = itertools.count()
        self._lock = threading.Condition()
        threading.Thread(target=self._run, daemon=True).start()

    def generate(self, prompt: list[int], max_new_tokens: int, tenant: Optional[str]) -> Iterator[int]:
        """Submits a request at once; yields its tokens as they are computed. Closing the iterator aborts the request."""
        tokens: queue.Queue[Token] = queue.Queue()
        request = Request(
            f"{tenant or 'request'}-{next(self._request_numbers)}", prompt, max_new_tokens, tenant,
            on_token=lambda token, is_last: tokens.put((token, is_last)),
        )  # fmt: skip
        with self._lock:
            try:
                self.engine.submit(request)
            except ValueError as error:
                raise BadRequest(str(error)) from error
            self._lock.notify()
        return self._iterate_tokens(request, tokens)

    def _iterate_tokens(self, request: Request, tokens: queue.Queue[Token]) -> Iterator[int]:
        is_last = False
        try:
            while not is_last:
                token, is_last = tokens.get()
                yield token
        finally:
            if not is_last:
                with self._lock:
                    self.engine.abort(request.id)

    def _run(self) -> None:
        while True:
            with self._lock:
                while not self.engine.has_work():
                    self._lock.wait()
                self.engine.step()
            time.sleep(0)  # lets handlers submit


class CompletionHandler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    engine: EngineThread

    def do_GET(self) -> None:
        if self.path == "/v1/models":
            self._send_json(200, {"object": "list", "data": [{"id": self.engine.name, "object": "model"}]})
        else:
            self._send_json(404, {"error": {"message": f"no {self.path}"}})

    def do_POST(self) -> None:
        is_chat = self.path == "/v1/chat/completions"
        if not is_chat and self.path != "/v1/completions":
            self.close_connection = True
            return self._send_json(404, {"error": {"message": f"no {self.path}"}})
        try:
            body = self._read_json_body()
            prompt = self._parse_prompt(body, is_chat)
            count = body.get("max_tokens", 16)
            if not isinstance(count, int) or isinstance(count, bool) or count < 1:
                raise BadRequest("max_tokens is no number above 0")
            tenant = body.get("user")
            tokens = self.engine.generate(prompt, count, tenant if isinstance(tenant, str) else None)
        except BadRequest as error:
            return self._send_json(400, {"error": {"message": str(error)}})
        usage = {"prompt_tokens": len(prompt), "completion_tokens": count, "total_tokens": len(prompt) + count}
        if body.get("stream"):
            self._stream_completion(tokens, count, is_chat, usage)
        else:
            choice = self._make_choice("".join(f" {token}" for token in tokens), is_chat, False, "length")
            self._send_json(200, {"model": self.engine.name, "choices": [choice], "usage": usage})

    def _read_json_body(self) -> dict[str, Any]:
        length = self.headers.get("Content-Length", "")
        if not length.isdigit() or int(length) > MAX_BODY_BYTES:
            self.close_connection = True
            raise BadRequest("the request needs a content length, of at most 16 MiB")
        try:
            body = json.loads(self.rfile.read(int(length)))
        except (ValueError, RecursionError):
            raise BadRequest("the request is no JSON") from None
        if not isinstance(body, dict):
            raise BadRequest("the request is no JSON object")
        return body

    def _parse_prompt(self, body: dict[str, Any], is_chat: bool) -> list[int]:
        """Token ids of a prompt, which is text, a list of token ids, or a list of messages."""
        vocabulary = self.engine.engine.network.shape.vocabulary
        prompt = body.get("messages" if is_chat else "prompt")
        if is_chat and isinstance(prompt, list):
            prompt = " ".join(str(message.get("content", "")) for message in prompt if isinstance(message, dict))
        if isinstance(prompt, str):
            return [zlib.crc32(word.encode()) % vocabulary for word in prompt.split()]
        if not isinstance(prompt, list) or not all(
            isinstance(token, int) and 0 <= token < vocabulary for token in prompt
        ):
            raise BadRequest(f"the prompt is neither text nor a list of token ids below {vocabulary}")
        return prompt

    def _stream_completion(self, tokens: Iterator[int], count: int, is_chat: bool, usage: dict[str, int]) -> None:
        try:
            self.send_response(200)
            self.send_header("Content-Type", "text/event-stream")
            self.send_header("Transfer-Encoding", "chunked")
            self.end_headers()
            for number, token in enumerate(tokens, 1):
                reason = "length" if number == count else None
                self._send_event(
                    {"model": self.engine.name, "choices": [self._make_choice(f" {token}", is_chat, True, reason)]}
                )
            self._send_event({"model": self.engine.name, "choices": [], "usage": usage})
            self._send_chunk(b"data: [DONE]\n\n")
            self._send_chunk(b"")
        except OSError:  # the client has gone
            self.close_connection = True
        finally:
            tokens.close()  # type: ignore[attr-defined]  # a generator

    @staticmethod
    def _make_choice(text: str, is_chat: bool, is_part: bool, reason: Optional[str]) -> dict[str, Any]:
        choice: dict[str, Any] = {"index": 0, "finish_reason": reason}
        if is_chat:
            choice["delta" if is_part else "message"] = {"role": "assistant", "content": text}
        else:
            choice["text"] = text
        return choice

    def _send_event(self, event: dict[str, Any]) -> None:
        self._send_chunk(b"data: " + json.dumps(event).encode() + b"\n\n")

    def _send_chunk(self, data: bytes) -> None:
        self.wfile.write(b"%x\r\n%s\r\n" % (len(data), data))

    def _send_json(self, status: int, document: dict[str, Any]) -> None:
        body = json.dumps(document).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Not a line per request."""


class CompletionServer(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 1024  # connections that arrive at once


def make_server(port: int, shape: str, device: str) -> CompletionServer:
    """`port` 0: any that is free, which server_address shows. Loads the engine, so it may take a while."""
    engine = Engine(SHAPES[shape], device, cache_blocks=4096 if device != "cpu" else 1024)
    engine.capture_graphs()
    handler = type("EngineHandler", (CompletionHandler,), {"engine": EngineThread(engine, shape)})
    return CompletionServer(("127.0.0.1", port), handler)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--port", type=int, default=8000, help="0: any that is free")
    parser.add_argument("--shape", choices=SHAPES, default="tiny")
    parser.add_argument("--device", default="cpu", help="cpu, or cuda for a GPU")
    arguments = parser.parse_args()
    server = make_server(arguments.port, arguments.shape, arguments.device)
    print(f"http://127.0.0.1:{server.server_address[1]}/v1", flush=True)
    try:
        server.serve_forever()
    except KeyboardInterrupt:
        server.server_close()


if __name__ == "__main__":
    main()
