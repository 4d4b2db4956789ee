"""joulemap bench serve as a command: usage, output, exit codes; and the example engine, in its process and over HTTP."""

from __future__ import annotations

import json
import sys
import threading
from pathlib import Path

import pytest
from fake_endpoint import (
    DONE_EVENT,
    GOOD_ANSWER,
    RESPONSE_HEAD,
    answer_with_models,
    answer_with_bytes,
    serving,
    text_event,
)

from joulemap._bench_serve import arguments, command, energy, http_stream

SERVING_EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "serving"
FAST_LOAD_OPTIONS = ["--rate", "100", "--requests", "6", "--warm-up", "0"]


def run_bench(capsys, *words: object) -> dict:
    """The JSON of a benchmark that succeeds."""
    assert command.main([*map(str, words), "--json"]) == 0, capsys.readouterr().err
    return json.loads(capsys.readouterr().out)


def refused(capsys, *words: str) -> str:
    with pytest.raises(SystemExit) as system_exit_info:
        command.main(words)
    assert system_exit_info.value.code == 2, words
    return capsys.readouterr().err


def test_levels_are_reported_in_the_order_of_the_rates(capsys):
    with serving(answer_with_models(answer_with_bytes(GOOD_ANSWER))) as server:
        document = run_bench(capsys, "--endpoint", server.url, "--rate", "50,100", "--requests", 6, "--seed", 3)
    assert [level["rate_per_s"] for level in document["levels"]] == [50, 100]
    for level in document["levels"]:
        assert level["requests"]["planned"] == level["requests"]["succeeded"] == 6 and level["failures"] == []
        assert level["energy"]["provenance"] in ("measured", "estimated") and level["energy"]["energy_j"] > 0
        assert level["energy"]["time_s"] >= level["steady"]["time_s"]  # the window covers the steady part
    assert document["target"] == {
        "kind": "endpoint", "address": server.url, "model": "listed", "api": "completions", "is_local": True,
    }  # fmt: skip
    prompts = [request.body["prompt"] for request in server.requests[1:]]
    assert len(prompts) == 2 + 12 and len(set(prompts)) == 14


def test_the_same_seed_sends_the_same_requests(capsys):
    sent_requests = []
    for seed in (5, 5, 6):
        with serving(answer_with_bytes(GOOD_ANSWER)) as server:
            run_bench(capsys, "--endpoint", server.url, "--model", "m", "--seed", seed, *FAST_LOAD_OPTIONS)
        sent_requests.append(
            sorted((request.body["prompt"], request.body["max_tokens"]) for request in server.requests)
        )
    assert sent_requests[0] == sent_requests[1] != sent_requests[2]


def test_a_trace_decides_arrivals_and_lengths(capsys, tmp_path):
    trace = tmp_path / "trace.csv"
    trace.write_text("arrival_s,prompt_tokens,output_tokens\n100,4,2\n100.01,5,3\n100.02,6,4\n")
    with serving(answer_with_bytes(GOOD_ANSWER)) as server:
        document = run_bench(
            capsys, "--endpoint", server.url, "--model", "m", "--arrivals", "trace", trace, "--warm-up", "0"
        )
    requested_lengths = [
        (len(request.body["prompt"].split()), request.body["max_tokens"]) for request in server.requests
    ]
    assert sorted(requested_lengths) == [(4, 2), (5, 3), (6, 4)]
    assert document["workload"]["trace_file"] == str(trace) and document["workload"]["prompt_tokens"] is None


def test_energy_of_a_remote_server_is_not_measured(capsys, monkeypatch):
    monkeypatch.setattr(http_stream.ResolvedHost, "is_loopback", False)
    monkeypatch.setattr(energy.WindowMeter, "begin", lambda self: pytest.fail("measured the wrong machine"))
    with serving(answer_with_bytes(GOOD_ANSWER)) as server:
        document = run_bench(capsys, "--endpoint", server.url, "--model", "m", *FAST_LOAD_OPTIONS)
    level = document["levels"][0]
    assert level["energy"]["energy_j"] is None and level["per_output_token"]["energy_j"] is None
    assert level["steady"]["arrivals"] == level["ttft_s"]["count"] > 1
    assert "server_elsewhere" in [note["code"] for note in document["diagnostics"]]


def test_failures_are_counted_and_a_level_without_success_fails(capsys):
    def fail(connection) -> None:
        connection.send(RESPONSE_HEAD + text_event("a"))

    with serving(fail) as server:
        assert command.main(["--endpoint", server.url, "--model", "m", *FAST_LOAD_OPTIONS, "--json"]) == 1
    level = json.loads(capsys.readouterr().out)["levels"][0]
    assert level["requests"]["failed"] == 6
    assert [(failure["kind"], failure["count"]) for failure in level["failures"]] == [("closed", 6)]


def test_a_level_with_some_failed_requests_is_reported(capsys):
    lock, count = threading.Lock(), iter(range(100))

    def fail_every_third(connection) -> None:
        with lock:
            number = next(count)
        connection.send(GOOD_ANSWER if number % 3 else b"HTTP/1.1 500 Broken\r\n\r\n")

    with serving(fail_every_third) as server:
        level = run_bench(capsys, "--endpoint", server.url, "--model", "m", *FAST_LOAD_OPTIONS)["levels"][0]
    assert level["requests"]["succeeded"] == 4
    assert level["failures"] == [{"kind": "status", "status": 500, "count": 2, "example": "500 Broken"}]


def test_the_time_limit_of_the_benchmark_leaves_out_later_levels(capsys):
    def hang(connection) -> None:
        connection.wait_for_client()

    with serving(hang) as server:
        words = ["--endpoint", server.url, "--model", "m", "--rate", "100,200", "--requests", "6", "--warm-up", "0"]
        assert command.main([*words, "--max-duration", "1", "--json"]) == 1
    document = json.loads(capsys.readouterr().out)
    assert len(document["levels"]) == 1 and document["levels"][0]["failures"][0]["kind"] == "cut"
    assert "bench_cut" in [note["code"] for note in document["diagnostics"]]


def test_a_server_that_is_not_there_fails_before_the_first_level(capsys):
    with serving(answer_with_bytes(GOOD_ANSWER)) as server:
        url = server.url
    for words in (["--model", "m"], []):
        assert command.main(["--endpoint", url, *words]) == 1
        error = capsys.readouterr().err
        assert url in error and "no connection" in error and "-> start the server, or correct --endpoint" in error


def test_the_report_is_a_file_if_asked_for(capsys, tmp_path):
    with serving(answer_with_bytes(GOOD_ANSWER)) as server:
        words = ["--endpoint", server.url, "--model", "m", *FAST_LOAD_OPTIONS]
        assert command.main([*words, "-o", str(tmp_path / "table.txt"), "-q"]) == 0
        assert capsys.readouterr().out == ""
        text = (tmp_path / "table.txt").read_text()
        assert "TTFT" in text and "note:" not in text
        count = len(server.requests)
        assert command.main([*words, "-o", str(tmp_path / "none" / "table.txt")]) == 1
        assert len(server.requests) == count, "it fails before it sends"


def test_a_trace_is_not_overwritten(capsys, tmp_path):
    trace = tmp_path / "trace.csv"
    trace.write_text("arrival_s,prompt_tokens,output_tokens\n0,1,1\n1,1,1\n")
    words = ["--endpoint", "http://127.0.0.1:1/v1", "--arrivals", "trace", str(trace), "-o", str(trace)]
    assert command.main(words) == 2 and "overwritten" in capsys.readouterr().err
    assert trace.read_text().startswith("arrival_s")


def test_wrong_usage_is_refused(capsys):
    endpoint = ["--endpoint", "http://127.0.0.1:1/v1"]
    for words, message in (
        ([], "--endpoint"),
        ([*endpoint, "--engine", "a.py:b"], "not allowed with"),
        ([*endpoint, "--requests", "3", "--duration", "3"], "not allowed with"),
        ([*endpoint, "--arrivals", "bursts"], "poisson"),
        ([*endpoint, "--arrivals", "trace"], "trace FILE"),
        ([*endpoint, "--arrivals", "trace", "a.csv", "--prompt-tokens", "3"], "--prompt-tokens"),
        (["--engine", "a.py:b", "--model", "m"], "--model"),
        ([*endpoint, "--prompt-tokens", "5..1"], "lognormal:256,0.5"),
        ([*endpoint, "--tenant", "a,a"], "chat=3,search=1"),
        ([*endpoint, "--ramp", "95%"], "0 to 90"),
        ([*endpoint, "--rat", "3"], "did you mean --rate?"),
        ([*endpoint, "surplus"], "unexpected argument surplus"),
    ):
        error = refused(capsys, *words)
        assert error.startswith("joulemap bench serve: ") and message in error, (words, error)
    assert command.main(["--endpoint", "localhost"]) == 2
    assert command.main([*endpoint, "--api-key-env", "JM_NO_SUCH_VARIABLE"]) == 2


def test_numbers_are_finite_and_in_their_range(capsys):
    for option in (
        "--rate",
        "--requests",
        "--duration",
        "--seed",
        "--timeout",
        "--max-duration",
        "--ramp",
        "--warm-up",
    ):
        for invalid_number in ("nan", "inf", "-1", "banana", "", "1e999"):
            assert option in refused(capsys, "--endpoint", "http://127.0.0.1:1/v1", f"{option}={invalid_number}")


def test_percentages_and_lists_in_options_are_parsed():
    words = ["--endpoint", "http://a/", "--ramp", "5%", "--rate", "1,2.5", "--tenant", "chat=3,search"]
    options = arguments.parse_options(words)
    assert (options.ramp, options.rate, options.tenant) == (0.05, (1.0, 2.5), (("chat", 3.0), ("search", 1.0)))
    assert arguments.parse_options(["--endpoint", "http://a/", "--ramp", "0.3"]).ramp == 0.3


@pytest.fixture
def serving_example(monkeypatch):
    """Modules of examples/serving."""
    pytest.importorskip("torch")
    monkeypatch.syspath_prepend(str(SERVING_EXAMPLE))
    yield
    for name in ("engine", "paged_attention", "http_server", "joulemap_bench_engine"):
        sys.modules.pop(name, None)


SMALL_BENCH_OPTIONS = [
    "--rate",
    "50",
    "--requests",
    "5",
    "--prompt-tokens",
    "4..20",
    "--output-tokens",
    "2..5",
    "--warm-up",
    "1",
]


def test_the_example_engine_is_measured_in_this_process(capsys, serving_example):
    document = run_bench(
        capsys, "--engine", f"{SERVING_EXAMPLE}/bench_engine.py:tiny", "--tenant", "chat", *SMALL_BENCH_OPTIONS
    )
    level = document["levels"][0]
    assert level["requests"]["succeeded"] == 5 and level["tenants"][0]["name"] == "chat"
    assert level["tpot_s"]["count"] > 0 and level["ttft_s"]["p50"] > 0 and document["target"]["kind"] == "engine"


@pytest.fixture
def server(serving_example):
    import http_server

    example_server = http_server.make_server(0, "tiny", "cpu")
    thread = threading.Thread(target=example_server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield example_server
    example_server.shutdown()
    thread.join()
    example_server.server_close()


@pytest.mark.parametrize("chat", [[], ["--chat"]])
def test_the_example_engine_is_measured_over_http(capsys, server, chat):
    url = f"http://127.0.0.1:{server.server_address[1]}/v1"
    level = run_bench(capsys, "--endpoint", url, *chat, *SMALL_BENCH_OPTIONS)["levels"][0]
    assert level["requests"]["succeeded"] == 5, level["failures"]
    assert level["ttft_s"]["count"] == level["steady"]["arrivals"] > 1
    assert not server.RequestHandlerClass.engine.engine.has_work()


def test_the_example_server_streams_the_planned_tokens(server):
    import urllib.error
    import urllib.request

    url = f"http://127.0.0.1:{server.server_address[1]}/v1/completions"

    def post_completion(**body: object) -> str:
        with urllib.request.urlopen(urllib.request.Request(url, json.dumps(body).encode()), timeout=60) as answer:
            return answer.read().decode()

    full_response = json.loads(post_completion(prompt="a b c", max_tokens=4))
    events = [
        line[6:]
        for line in post_completion(prompt="a b c", max_tokens=4, stream=True).splitlines()
        if line.startswith("data: ")
    ]
    assert events[-1] == DONE_EVENT[6:].decode().strip()
    parts = [json.loads(event) for event in events[:-1]]
    assert (
        "".join(choice["text"] for part in parts for choice in part["choices"]) == full_response["choices"][0]["text"]
    )
    assert (
        parts[-1]["usage"] == full_response["usage"] == {"prompt_tokens": 3, "completion_tokens": 4, "total_tokens": 7}
    )
    for invalid_request in ({"prompt": "a", "max_tokens": 0}, {"prompt": [5000]}, {"prompt": "", "max_tokens": 3}, {}):
        with pytest.raises(urllib.error.HTTPError) as http_error_info:
            post_completion(**invalid_request)
        assert http_error_info.value.code == 400 and json.loads(http_error_info.value.read())["error"]["message"]


def test_the_example_server_is_reachable_from_this_machine_only(server):
    assert server.server_address[0] == "127.0.0.1"
