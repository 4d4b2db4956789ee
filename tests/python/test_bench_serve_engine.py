"""joulemap bench serve with an engine in its process: the protocol, and engines that fail."""

from __future__ import annotations

import asyncio
import threading

import pytest

from joulemap._bench_serve.engine import EngineTarget, load_engine
from joulemap._bench_serve.load import _send_request
from joulemap._bench_serve.outcome import BenchError, RequestOutcome
from joulemap._bench_serve.plan import PlannedRequest


class Engine:
    """Generates a token for every request in each step."""

    vocabulary = 50

    def __init__(self) -> None:
        self.running: list = []
        self.submitted: list = []
        self.aborted: list[str] = []
        self.threads: set[int] = set()

    def submit(self, request) -> None:
        self.threads.add(threading.get_ident())
        if request.tenant == "refused":
            raise ValueError("the prompt is too long")
        self.submitted.append(request)
        self.running.append([request, request.max_new_tokens])

    def has_work(self) -> bool:
        return bool(self.running)

    def step(self) -> None:
        self.threads.add(threading.get_ident())
        for entry in list(self.running):
            self.generate(entry)

    def generate(self, entry) -> None:
        entry[1] -= 1
        entry[0].on_token(3, entry[1] == 0)
        if entry[1] == 0:
            self.running.remove(entry)

    def abort(self, id: str) -> None:
        self.aborted.append(id)
        self.running = [entry for entry in self.running if entry[0].id != id]


class NeverGeneratingEngine(Engine):
    """Generates nothing until a request is aborted."""

    def generate(self, entry) -> None:
        if self.aborted:
            super().generate(entry)


def make_request(number: int, tenant: str = "chat") -> PlannedRequest:
    return PlannedRequest(number, 0.0, 20, 3, tenant, f"seed {number}")


def serve_requests(
    engine: Engine, *requests: PlannedRequest, timeouts_s: tuple[float, ...] = ()
) -> list[RequestOutcome]:
    async def run() -> list[RequestOutcome]:
        target = EngineTarget("engine.py:make", engine)
        await target.open(1)
        loop = asyncio.get_running_loop()
        outcomes = [RequestOutcome(request, loop.time()) for request in requests]
        limits_s = timeouts_s or [60.0] * len(outcomes)
        send_tasks = [
            _send_request(outcome, target.prepare(outcome.request), target, limit_s, loop.time() + 1000)
            for outcome, limit_s in zip(outcomes, limits_s)
        ]
        await asyncio.gather(*send_tasks)
        await target.close()
        return outcomes

    return asyncio.run(run())


def test_an_engine_receives_prompts_of_its_vocabulary_and_tokens_are_timed():
    engine = Engine()
    outcomes = serve_requests(engine, make_request(0), make_request(1))
    assert all(
        outcome.is_success and outcome.output_tokens == 3 and outcome.prompt_tokens == 20 for outcome in outcomes
    )
    assert outcomes[0].due_s <= outcomes[0].chunk_times_s[0] <= outcomes[0].chunk_times_s[2] <= outcomes[0].ended_s
    first_request = engine.submitted[0]
    assert len(first_request.prompt) == 20 and set(first_request.prompt) <= set(range(50))
    assert (first_request.max_new_tokens, first_request.tenant) == (3, "chat")
    assert len({request.id for request in engine.submitted}) == 2


def test_one_thread_calls_the_engine_and_it_is_not_the_one_that_sends():
    engine = Engine()
    serve_requests(engine, *map(make_request, range(5)))
    assert len(engine.threads) == 1 and threading.get_ident() not in engine.threads


def test_a_request_that_times_out_is_aborted_and_others_go_on():
    engine = NeverGeneratingEngine()
    timed_out_outcome, successful_outcome = serve_requests(
        engine, make_request(0), make_request(1), timeouts_s=(0.05, 60)
    )
    assert timed_out_outcome.failure.kind == "timeout" and timed_out_outcome.chunk_times_s == []
    assert successful_outcome.is_success and engine.aborted == ["request-1"]


def test_a_request_that_the_engine_refuses_fails_alone():
    refused_outcome, served = serve_requests(Engine(), make_request(0, "refused"), make_request(1))
    assert refused_outcome.failure.kind == "engine" and "the prompt is too long" in refused_outcome.failure.detail
    assert served.is_success


def test_an_engine_that_raises_fails_all_requests_at_once():
    class RaisingEngine(Engine):
        def step(self) -> None:
            raise RuntimeError("CUDA out of memory")

    outcomes = serve_requests(RaisingEngine(), make_request(0), make_request(1))
    assert [outcome.failure.kind for outcome in outcomes] == ["engine"] * 2
    assert outcomes[0].failure.detail == "RuntimeError: CUDA out of memory"


def test_a_file_is_loaded_with_modules_beside_it(tmp_path):
    (tmp_path / "made_for_bench.py").write_text("vocabulary = 9\n")
    (tmp_path / "one.py").write_text(
        "import made_for_bench\n"
        "class make:\n"
        "    vocabulary = made_for_bench.vocabulary\n"
        "    def submit(self, request): ...\n    def step(self): ...\n    def has_work(self): return False\n"
    )
    assert load_engine(f"{tmp_path}/one.py:make").url.endswith("one.py:make")


@pytest.mark.parametrize(
    ("text", "message", "exit_code"),
    [
        ("import no_such_module_here", "no_such_module_here", 77),
        ("raise OSError('no disk')", "no disk", 1),
        ("make = 3", "has no function make", 1),
        ("def make(): raise RuntimeError('no GPU')", "no GPU", 1),
        ("class make: pass", "has no submit, step, has_work, vocabulary", 1),
    ],
)
def test_a_file_without_an_engine_is_refused_with_the_cause(tmp_path, text, message, exit_code):
    (tmp_path / "one.py").write_text(text)
    with pytest.raises(BenchError, match=message) as exception_info:
        load_engine(f"{tmp_path}/one.py:make")
    assert exception_info.value.exit_code == exit_code


@pytest.mark.parametrize(("name", "exit_code"), [("one.py", 2), (":make", 2), ("one.py:", 2), ("missing.py:make", 1)])
def test_a_name_without_a_file_or_function_is_refused(name, exit_code):
    with pytest.raises(BenchError) as exception_info:
        load_engine(name)
    assert exception_info.value.exit_code == exit_code
