"""joulemap bench serve and servers over HTTP: what it sends, what it reads, and what it makes of servers that fail."""

from __future__ import annotations

import asyncio
import socket
import threading

import pytest
from fake_endpoint import (
    DONE_EVENT,
    GOOD_ANSWER,
    RESPONSE_HEAD,
    USAGE_EVENT,
    event,
    answer_with_models,
    answer_with_bytes,
    serving,
    text_event,
)

from joulemap._bench_serve.endpoint import Endpoint, EndpointOptions
from joulemap._bench_serve.http_stream import ResolvedHost, parse_address, send_http_request
from joulemap._bench_serve.load import _send_request
from joulemap._bench_serve.outcome import BenchError, RequestOutcome, RequestFailure
from joulemap._bench_serve.plan import PlannedRequest
from joulemap._bench_serve.sse import MAX_EVENT_BYTES, SseParser, parse_chunk

PLANNED_REQUEST = PlannedRequest(0, 0.0, 11, 3, "chat", "prompt")
CHUNKED_HEAD = RESPONSE_HEAD.replace(b"\r\n\r\n", b"\r\nTransfer-Encoding: chunked\r\n\r\n")


def send_request(url: str, timeout_s: float = 30, **options) -> RequestOutcome:
    """The outcome of one request."""

    async def run() -> RequestOutcome:
        endpoint = Endpoint(url, parse_address(url), EndpointOptions(**{"model": "m", **options}))
        await endpoint.open(timeout_s)
        loop = asyncio.get_running_loop()
        outcome = RequestOutcome(PLANNED_REQUEST, loop.time())
        await _send_request(outcome, endpoint.prepare(PLANNED_REQUEST), endpoint, timeout_s, loop.time() + 1000)
        return outcome

    return asyncio.run(run())


def find_failure_kind(outcome: RequestOutcome) -> object:
    return outcome.failure and outcome.failure.kind


def test_a_stream_gives_times_and_lengths_of_the_server():
    with serving(answer_with_bytes(GOOD_ANSWER)) as server:
        outcome = send_request(server.url)
    assert outcome.is_success and outcome.prompt_tokens == 11 and outcome.output_tokens == 3
    assert (
        len(outcome.chunk_times_s) == 3
        and outcome.due_s <= outcome.sent_s <= outcome.chunk_times_s[0] <= outcome.ended_s
    )


def test_the_request_has_the_planned_prompt_and_lengths():
    with serving(answer_with_bytes(GOOD_ANSWER)) as server:
        for _ in range(2):
            send_request(server.url, ignores_eos=True, api_key="secret")
        first_request, second_request = server.requests
    assert first_request.path == "/v1/completions" and first_request.body == second_request.body
    assert len(first_request.body.pop("prompt").split()) == 11
    assert first_request.body == {
        "model": "m", "max_tokens": 3, "temperature": 0, "stream": True, "stream_options": {"include_usage": True},
        "user": "chat", "ignore_eos": True,
    }  # fmt: skip
    assert first_request.headers["authorization"] == "Bearer secret"


def test_a_chat_sends_messages_and_reads_deltas():
    role_event = event(choices=[{"delta": {"role": "assistant", "content": ""}, "finish_reason": None}])
    parts = b"".join(event(choices=[{"delta": {"content": "x"}, "finish_reason": None}]) for _ in range(2))
    with serving(answer_with_bytes(RESPONSE_HEAD + role_event + parts + DONE_EVENT)) as server:
        outcome = send_request(server.url, is_chat=True)
    assert outcome.is_success and len(outcome.chunk_times_s) == 2  # the first event has no text
    assert server.requests[0].path == "/v1/chat/completions"
    assert (
        server.requests[0].body["messages"][0]["role"] == "user" and "authorization" not in server.requests[0].headers
    )


def test_a_stream_may_come_in_pieces_of_any_size():
    def answer_by_byte(connection) -> None:
        body = text_event("ä") + b": a comment\n\n" + text_event("b", "stop") + USAGE_EVENT + DONE_EVENT
        connection.send(CHUNKED_HEAD)
        for index in range(len(body)):
            connection.send(b"1;extension\r\n%c\r\n" % body[index])
        connection.send(b"0\r\n\r\n")

    with serving(answer_by_byte) as server:
        outcome = send_request(server.url)
    assert outcome.is_success and len(outcome.chunk_times_s) == 2 and outcome.output_tokens == 3


def test_a_stream_without_a_last_event_is_complete_if_it_says_why_it_ended():
    with serving(answer_with_bytes(RESPONSE_HEAD + text_event("a") + text_event("b", "stop"))) as server:
        assert send_request(server.url).is_success


SERVER_FAULTS = {
    "closes before an answer": (b"", "closed"),
    "closes in the head": (b"HTTP/1.1 200 OK\r\nContent-", "closed"),
    "closes in the middle of the stream": (RESPONSE_HEAD + text_event("a"), "closed"),
    "closes in the middle of a chunk": (CHUNKED_HEAD + b"1000\r\n" + text_event("a"), "closed"),
    "shorter than its length": (
        RESPONSE_HEAD.replace(b"\r\n\r\n", b"\r\nContent-Length: 999\r\n\r\n") + text_event("a"),
        "closed",
    ),
    "an error": (b"HTTP/1.1 503 Busy\r\nContent-Length: 4\r\n\r\nfull", "status"),
    "an endless error": (b"HTTP/1.1 500 Broken\r\n\r\n" + b"x" * 100_000, "status"),
    "an error in the stream": (
        RESPONSE_HEAD + text_event("a") + event(error={"message": "out of memory"}),
        "error_event",
    ),
    "no HTTP": (b"SSH-2.0-OpenSSH_9\r\n\r\n", "malformed"),
    "no stream": (b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n\r\n{}", "malformed"),
    "no JSON": (RESPONSE_HEAD + b"data: {\n\n", "malformed"),
    "no object": (RESPONSE_HEAD + b"data: [1]\n\n", "malformed"),
    "deep JSON": (RESPONSE_HEAD + b"data: " + b"[" * 100_000 + b"\n\n", "malformed"),
    "no choices": (RESPONSE_HEAD + event(hello=1), "malformed"),
    "choices of another type": (RESPONSE_HEAD + event(choices="a"), "malformed"),
    "a wrong chunk size": (CHUNKED_HEAD + b"zz\r\nabc", "malformed"),
    "a negative chunk size": (CHUNKED_HEAD + b"-5\r\nabc", "malformed"),
    "a wrong length": (RESPONSE_HEAD.replace(b"\r\n\r\n", b"\r\nContent-Length: -1\r\n\r\n"), "malformed"),
    "an endless head": (b"HTTP/1.1 200 OK\r\nX: " + b"x" * 200_000, "malformed"),
    "an endless event": (RESPONSE_HEAD + b"data: " + b"x" * (MAX_EVENT_BYTES + 100_000), "malformed"),
    "a stream without tokens": (
        RESPONSE_HEAD + event(choices=[{"text": "", "finish_reason": "stop"}]) + DONE_EVENT,
        "empty",
    ),
}


@pytest.mark.parametrize("name", SERVER_FAULTS)
def test_a_server_that_fails_is_a_failure_of_its_kind(name):
    data, kind = SERVER_FAULTS[name]
    with serving(answer_with_bytes(data)) as server:
        outcome = send_request(server.url)
    assert find_failure_kind(outcome) == kind, outcome.failure
    assert not outcome.is_success and outcome.ended_s is not None


def test_a_status_is_reported_with_the_explanation_of_the_server():
    with serving(
        answer_with_bytes(b"HTTP/1.1 429 Slow down\r\nContent-Length: 14\r\n\r\n\x1b[31mtoo \nmany")
    ) as server:
        failure = send_request(server.url).failure
    assert failure.status == 429 and failure.detail == "429 Slow down [31mtoo many"


@pytest.mark.parametrize(
    "before", [b"", RESPONSE_HEAD, RESPONSE_HEAD + text_event("a"), b"HTTP/1.1 500 Broken\r\n\r\n"]
)
def test_a_server_that_hangs_is_a_timeout(before):
    def hang(connection) -> None:
        connection.send(before)
        connection.wait_for_client()

    with serving(hang) as server:
        assert find_failure_kind(send_request(server.url, timeout_s=0.2)) == "timeout"


def test_the_connection_of_a_timeout_is_closed_while_others_go_on():
    connection_closed = threading.Event()

    def hang(connection) -> None:
        connection.wait_for_client()
        connection_closed.set()

    async def run(url: str) -> bool:
        endpoint = Endpoint(url, parse_address(url), EndpointOptions(model="m"))
        await endpoint.open(1)
        loop = asyncio.get_running_loop()
        await _send_request(
            RequestOutcome(PLANNED_REQUEST, loop.time()),
            endpoint.prepare(PLANNED_REQUEST),
            endpoint,
            0.05,
            loop.time() + 1000,
        )
        return await loop.run_in_executor(None, connection_closed.wait, 60)

    with serving(hang) as server:
        assert asyncio.run(run(server.url))


def test_a_server_that_sends_a_byte_now_and_then_is_a_timeout():
    def drip_answer(connection) -> None:
        connection.send(RESPONSE_HEAD)
        while True:  # until the client closes the connection
            connection.send(b":\n")

    with serving(drip_answer) as server:
        assert find_failure_kind(send_request(server.url, timeout_s=0.2)) == "timeout"


def test_a_port_without_a_server_refuses():
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        outcome = send_request(f"http://127.0.0.1:{unused.getsockname()[1]}/v1")
    assert find_failure_kind(outcome) == "refused"


def test_an_address_of_the_host_without_a_server_is_tried_once():
    async def list_connected_ips(url: str) -> list[str]:
        host = ResolvedHost(parse_address(url), ["127.0.0.2", "127.0.0.1"], None)
        async with send_http_request(host, "GET", "/models", {}) as response:
            assert response.status == 200
        return host.ip_addresses

    with serving(answer_with_bytes(GOOD_ANSWER)) as server:
        assert asyncio.run(list_connected_ips(server.url)) == ["127.0.0.1", "127.0.0.2"]


def test_the_first_model_is_used_if_none_is_named():
    with serving(answer_with_models(answer_with_bytes(GOOD_ANSWER))) as server:
        assert send_request(server.url, model=None).is_success
    assert server.requests[1].body["model"] == "listed"


@pytest.mark.parametrize("answer", [b"404 No\r\n\r\n", b"200 OK\r\n\r\n{}", b'200 OK\r\n\r\n{"data":[]}'])
def test_a_server_without_a_list_of_models_needs_a_name(answer):
    with serving(answer_with_bytes(b"HTTP/1.1 " + answer)) as server, pytest.raises(BenchError) as exception_info:
        send_request(server.url, model=None)
    assert exception_info.value.remedy == "pass --model"


@pytest.mark.parametrize("address", ["127.0.0.1", "localhost", "[::1]"])
def test_loopback_addresses_are_on_this_machine(address):
    async def is_local(url: str) -> bool:
        endpoint = Endpoint(url, parse_address(url), EndpointOptions(model="m"))
        await endpoint.open(1)
        return endpoint.is_local

    assert asyncio.run(is_local(f"http://{address}:1/v1"))
    assert not asyncio.run(is_local("http://192.0.2.7:1/v1"))


def test_invalid_server_addresses_are_refused():
    address = parse_address("https://example.org/a/v1/")
    assert (address.host, address.port, address.is_tls, address.path) == ("example.org", 443, True, "/a/v1")
    assert parse_address("http://[::1]:80").host_header == "[::1]:80"
    invalid_addresses = [
        "localhost:8000",
        "ftp://a/",
        "http://",
        "http://a:x/",
        "http://a b/",
        "http://a/?q",
        "http://u:p@a/",
    ]
    for invalid_address in (*invalid_addresses, "http://a\r\nX: y/"):
        with pytest.raises(ValueError):
            parse_address(invalid_address)


@pytest.mark.parametrize("end", [b"\n", b"\r\n", b"\r"])
def test_events_end_with_any_kind_of_line_end(end):
    stream = end.join(
        [b": comment", b"event: x", b"data: one", b"data:two", b"", b"id: 7", b"", b"data: three", b"", b""]
    )
    for size in (1, 2, 3, 1000):
        parser = SseParser()
        event_data = [
            data
            for byte_offset in range(0, len(stream), size)
            for data in parser.feed(stream[byte_offset : byte_offset + size])
        ]
        event_data += parser.feed(b"data: end\n\n") if end == b"\r" else []
        assert event_data[:2] == ["one\ntwo", "three"], size


def test_invalid_token_counts_are_ignored():
    for invalid_count in ("7", -1, True, 1.5, None):
        chunk = parse_chunk(
            event(choices=[], usage={"prompt_tokens": 1, "completion_tokens": invalid_count})[6:].decode()
        )
        assert chunk.output_tokens is None
    with pytest.raises(RequestFailure, match="out of memory"):
        parse_chunk('{"error": {"message": "out of memory"}}')
