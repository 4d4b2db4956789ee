# SPDX-License-Identifier: Apache-2.0
"""The target of --endpoint: an OpenAI-compatible server, over streaming completions."""

from __future__ import annotations

import asyncio
import json
from dataclasses import dataclass
from typing import Any, Optional

from .http_stream import EndpointAddress, HttpResponse, ResolvedHost, resolve_host, send_http_request
from .outcome import BenchError, RequestOutcome, RequestFailure
from .plan import PlannedRequest
from .sse import STREAM_END, SseParser, parse_chunk, sanitize_server_text

MAX_MESSAGE_BYTES = 4096  # of an error that the server explains
MAX_MODEL_LIST_BYTES = 1 << 20
# Words that are one token each in most vocabularies, with the space before them. A server's own count is reported.
PROMPT_WORDS = (
    "the of and to in is was for on that with as it by at from his an were are which this be had not but have one her "
    "or first two their its who new been time other has more some can only over also years them out would about people "
    "may well such most no made after where many use between years then these part work life day way little long water "
    "city school world house system number group state public point family high night week company power program line "
    "right side place case head turn hand small large next open white second together room door land side body"
).split()


@dataclass(frozen=True)
class EndpointOptions:
    model: Optional[str] = None  # None: the first that the server lists
    is_chat: bool = False
    ignores_eos: bool = False
    api_key: Optional[str] = None


class Endpoint:
    """Sends each request over a connection of its own."""

    has_one_token_per_chunk = False

    def __init__(self, url: str, address: EndpointAddress, options: EndpointOptions) -> None:
        self.url = url
        self.model = options.model
        self.is_local = False  # on this machine; known after open()
        self._address, self._options = address, options
        self._resolved_host: Optional[ResolvedHost] = None
        self._headers = {"Content-Type": "application/json", "Accept": "text/event-stream"}
        if options.api_key:
            self._headers["Authorization"] = f"Bearer {options.api_key}"

    async def open(self, timeout_s: float) -> None:
        """Finds the host and, if none is given, the model."""
        self._resolved_host = await resolve_host(self._address)
        self.is_local = self._resolved_host.is_loopback
        if self.model is not None:
            return
        try:
            self.model = await asyncio.wait_for(self._fetch_first_model(), timeout_s)
        except asyncio.TimeoutError:
            raise BenchError(f"{self.url} does not list its models within {timeout_s:g} s", "pass --model") from None
        except RequestFailure as failure:
            remedy = "start the server, or correct --endpoint" if failure.kind == "refused" else "pass --model"
            raise BenchError(f"{self.url} does not list its models: {failure}", remedy) from failure

    async def close(self) -> None:
        return

    def prepare(self, request: PlannedRequest) -> bytes:
        """The body of the request."""
        return json.dumps(self._make_request_body(request)).encode()

    async def send(self, prepared: bytes, outcome: RequestOutcome) -> None:
        """Returns when the answer is complete. Raises RequestFailure."""
        assert self._resolved_host is not None, "not open"
        api_path = "/chat/completions" if self._options.is_chat else "/completions"
        async with send_http_request(self._resolved_host, "POST", api_path, self._headers, prepared) as response:
            if response.status != 200:
                raise RequestFailure("status", await _status_text(response), response.status)
            if "text/event-stream" not in response.headers.get("content-type", "").lower():
                raise RequestFailure("malformed", "the content type is not text/event-stream")
            await _read_stream(response, outcome)
        if not outcome.chunk_times_s:
            raise RequestFailure("empty", "")

    def _make_request_body(self, request: PlannedRequest) -> dict[str, Any]:
        prompt_text = " ".join(PROMPT_WORDS[word % len(PROMPT_WORDS)] for word in request.prompt())
        request_body: dict[str, Any] = {"prompt": prompt_text}
        if self._options.is_chat:
            request_body = {"messages": [{"role": "user", "content": prompt_text}]}
        request_body.update(
            model=self.model,
            max_tokens=request.output_tokens,
            temperature=0,
            stream=True,
            stream_options={"include_usage": True},
        )
        if request.tenant is not None:
            request_body["user"] = request.tenant
        if self._options.ignores_eos:
            request_body["ignore_eos"] = True
        return request_body

    async def _fetch_first_model(self) -> str:
        assert self._resolved_host is not None, "not open"
        model_list = b""
        headers = {**self._headers, "Accept": "application/json"}
        async with send_http_request(self._resolved_host, "GET", "/models", headers) as response:
            if response.status != 200:
                raise RequestFailure("status", await _status_text(response), response.status)
            async for received_bytes in response.read_body():
                model_list += received_bytes
                if len(model_list) > MAX_MODEL_LIST_BYTES:
                    raise RequestFailure("malformed", f"a list of more than {MAX_MODEL_LIST_BYTES} bytes")
        try:
            return str(json.loads(model_list)["data"][0]["id"])
        except (ValueError, KeyError, IndexError, TypeError, RecursionError):
            raise RequestFailure("malformed", "no list of models") from None


async def _read_stream(response: HttpResponse, outcome: RequestOutcome) -> None:
    """Adds the arrival of each chunk with text to `outcome`, until the stream says that it ends."""
    loop, parser, has_ended = asyncio.get_running_loop(), SseParser(), False
    async for received_bytes in response.read_body():
        now_s = loop.time()
        for event_data in parser.feed(received_bytes):
            if event_data == STREAM_END:
                return
            chunk = parse_chunk(event_data)
            if chunk.has_text:
                outcome.chunk_times_s.append(now_s)
            has_ended = has_ended or chunk.is_last
            if chunk.output_tokens is not None:
                outcome.prompt_tokens, outcome.output_tokens = chunk.prompt_tokens, chunk.output_tokens
    if not has_ended:
        raise RequestFailure("closed", f"after {len(outcome.chunk_times_s)} chunks")


async def _status_text(response: HttpResponse) -> str:
    """The status, and how the server explains it."""
    error_body = b""
    try:
        async for received_bytes in response.read_body():
            error_body += received_bytes
            if len(error_body) > MAX_MESSAGE_BYTES:
                break
    except RequestFailure:
        pass  # the status is known
    return sanitize_server_text(
        f"{response.status} {response.reason} {error_body[:MAX_MESSAGE_BYTES].decode('utf-8', 'replace')}"
    )
