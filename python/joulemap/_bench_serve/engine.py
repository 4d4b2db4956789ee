# SPDX-License-Identifier: Apache-2.0
"""The target of --engine: an engine in this process, which a function of the user's module creates.

The function takes no argument and returns an object with

    vocabulary       number of token ids; prompts use all of them
    submit(request)  accepts a request: request.id, .prompt (list of token ids), .max_new_tokens, .tenant (or None). The
                     engine calls request.on_token(token, is_last) for each token that it generates, within step()
    step()           computes one forward step
    has_work()       whether step() has something to compute
    abort(id)        optional: a request has timed out and needs no more steps

All calls come from one thread, which calls nothing else meanwhile.
"""

from __future__ import annotations

import asyncio
import contextlib
import importlib.util
import os
import queue
import sys
import threading
import time
from dataclasses import dataclass
from typing import Any, Callable, Optional

from .outcome import BenchError, RequestOutcome, RequestFailure
from .plan import PlannedRequest

ENGINE_METHODS = ("submit", "step", "has_work")


CLOSE_TIMEOUT_S = 5  # wait for the last step of an engine


class _TargetClosed(Exception):
    """The benchmark needs the engine no more."""


@dataclass
class EngineRequest:
    """A request as the engine receives it."""

    id: str
    prompt: list[int]
    max_new_tokens: int
    tenant: Optional[str]
    on_token: Callable[[int, bool], None]  # token, whether it is the last one


class EngineTarget:
    """Runs the steps of an engine in a thread. `engine` follows the protocol above."""

    has_one_token_per_chunk = True
    is_local = True
    model = None

    def __init__(self, name: str, engine: Any) -> None:
        self.url = name
        self._engine = engine
        self._action_queue: queue.Queue[Optional[Callable[[], None]]] = queue.Queue()
        self._pending_futures: dict[str, asyncio.Future] = {}
        self._engine_error: Optional[str] = None  # why it runs no more
        self._thread = threading.Thread(target=self._run_engine_steps, name="engine", daemon=True)
        self._request_count = 0

    async def open(self, timeout_s: float) -> None:
        self._event_loop = asyncio.get_running_loop()
        self._thread.start()

    async def close(self) -> None:
        """Waits for the engine's last step, but not forever: the engine may hang."""
        self._action_queue.put(None)
        await self._event_loop.run_in_executor(None, self._thread.join, CLOSE_TIMEOUT_S)

    def prepare(self, request: PlannedRequest) -> list[int]:
        """Token ids of the prompt."""
        return [word % self._engine.vocabulary for word in request.prompt()]

    async def send(self, prepared: list[int], outcome: RequestOutcome) -> None:
        """Returns when the answer is complete. Raises RequestFailure."""
        if self._engine_error is not None:
            raise RequestFailure("engine", self._engine_error)
        self._request_count += 1
        request_id = f"request-{self._request_count}"
        future = self._pending_futures[request_id] = self._event_loop.create_future()

        def on_token(token: int, is_last: bool) -> None:
            self._event_loop.call_soon_threadsafe(self._add_token, request_id, outcome, time.monotonic(), is_last)

        engine_request = EngineRequest(
            request_id, prepared, outcome.request.output_tokens, outcome.request.tenant, on_token
        )
        self._action_queue.put(lambda: self._submit_request(engine_request))
        try:
            await future
        except asyncio.CancelledError:
            self._action_queue.put(lambda: self._abort_request(request_id))
            raise
        finally:
            self._pending_futures.pop(request_id, None)
        outcome.prompt_tokens, outcome.output_tokens = len(prepared), len(outcome.chunk_times_s)

    def _add_token(self, request_id: str, outcome: RequestOutcome, now_s: float, is_last: bool) -> None:
        future = self._pending_futures.get(request_id)
        if future is None or future.done():
            return  # timed out
        outcome.chunk_times_s.append(now_s)
        if is_last:
            future.set_result(None)

    def _submit_request(self, engine_request: EngineRequest) -> None:
        """A request that the engine refuses is no failure of the engine."""
        try:
            self._engine.submit(engine_request)
        except Exception as error:  # noqa: BLE001 - of the user's engine
            self._event_loop.call_soon_threadsafe(
                self._fail_request, engine_request.id, f"{type(error).__name__}: {error}"
            )

    def _fail_request(self, request_id: str, error: str) -> None:
        future = self._pending_futures.get(request_id)
        if future is not None and not future.done():
            future.set_exception(RequestFailure("engine", error))

    def _abort_request(self, request_id: str) -> None:
        abort_function = getattr(self._engine, "abort", None)
        if abort_function is not None:
            abort_function(request_id)

    def _run_engine_steps(self) -> None:
        """The engine's thread: accepts what has arrived, then computes a step."""
        try:
            while True:
                engine_action = self._take_next_engine_action(wait=not self._engine.has_work())
                while engine_action is not None:
                    engine_action()
                    engine_action = self._take_next_engine_action(wait=False)
                if self._engine.has_work():
                    self._engine.step()
        except _TargetClosed:
            return
        except Exception as error:  # noqa: BLE001 - of the user's engine: every request fails with it
            with contextlib.suppress(RuntimeError):  # the event loop has ended
                self._event_loop.call_soon_threadsafe(self._fail_all_requests, f"{type(error).__name__}: {error}")

    def _take_next_engine_action(self, wait: bool) -> Optional[Callable[[], None]]:
        """What the event loop asks for; None: nothing now."""
        try:
            engine_action = self._action_queue.get(block=wait)
        except queue.Empty:
            return None
        if engine_action is None:
            raise _TargetClosed
        return engine_action

    def _fail_all_requests(self, error: str) -> None:
        self._engine_error = error
        for request_id in list(self._pending_futures):
            self._fail_request(request_id, error)


def load_engine(name: str) -> EngineTarget:
    """`name`: FILE.py:FUNCTION. The folder of the file is searched for modules, as for a script."""
    file_path, _, function_name = name.rpartition(":")
    if not file_path or not function_name.isidentifier():
        raise BenchError(f"{name} is not FILE.py:FUNCTION", "such as examples/serving/bench_engine.py:tiny", 2)
    if not os.path.isfile(file_path):
        raise BenchError(f"{file_path} does not exist", "pass --engine FILE.py:FUNCTION")
    engine = _call_factory(file_path, function_name)
    missing_members = [
        method_name for method_name in ENGINE_METHODS if not callable(getattr(engine, method_name, None))
    ]
    vocabulary = getattr(engine, "vocabulary", None)
    if missing_members or not isinstance(vocabulary, int) or vocabulary < 1:
        missing_members += [] if isinstance(vocabulary, int) and vocabulary > 0 else ["vocabulary"]
        raise BenchError(
            f"the engine of {name} has no {', '.join(missing_members)}", "see docs/how-to/benchmark-serving.md"
        )
    return EngineTarget(name, engine)


def _call_factory(file_path: str, function_name: str) -> Any:
    sys.path.insert(0, os.path.dirname(os.path.abspath(file_path)))
    module_spec = importlib.util.spec_from_file_location("joulemap_bench_engine", file_path)
    assert module_spec is not None and module_spec.loader is not None
    module = importlib.util.module_from_spec(module_spec)
    sys.modules["joulemap_bench_engine"] = module
    try:
        module_spec.loader.exec_module(module)
    except ImportError as error:
        raise BenchError(f"{file_path} cannot be imported: {error}", f"install it for {sys.executable}", 77) from error
    except Exception as error:
        raise BenchError(f"{file_path} cannot be imported: {type(error).__name__}: {error}") from error
    factory = getattr(module, function_name, None)
    if not callable(factory):
        raise BenchError(f"{file_path} has no function {function_name}")
    try:
        return factory()
    except Exception as error:
        raise BenchError(f"{function_name}() of {file_path} failed: {type(error).__name__}: {error}") from error
