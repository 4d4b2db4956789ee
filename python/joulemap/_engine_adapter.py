# SPDX-License-Identifier: Apache-2.0
"""What the adapters of serving engines share. An adapter wraps functions of an engine and reports its forward steps.

EngineAdapter wraps functions. It keeps every failure away from the program: an engine of unknown shape, or the first
error in a hook, switches the adapter off with one diagnostic, and the engine runs on.

EngineStepLog numbers and times the steps. Engines may launch a step before the step before it has completed; then the later
step begins where the earlier one ends. It reports a request as finished with the last step that contains it, and as
preempted if it computes tokens again that were in the KV cache.
"""

from __future__ import annotations

import functools
from importlib import metadata
from typing import Any, Callable, Dict, Iterable, List, NamedTuple, Optional, Tuple

from . import _hot

OUTCOME_FINISHED, OUTCOME_ABORTED = "finished", "aborted"
EVENT_CODES = {OUTCOME_FINISHED: 1, OUTCOME_ABORTED: 4}  # of engine_event()
_MAX_STEPS_IN_FLIGHT = 64  # steps; engines have a few, and one that never completes must not fill the memory


class EngineAdapter:
    """The hooks of one engine."""

    def __init__(self, engine: str, package: str) -> None:
        self.engine = engine
        self.is_enabled = True
        try:
            self.version = metadata.version(package)
        except Exception:  # noqa: BLE001 - a source tree without metadata
            self.version = "of unknown version"

    def install(self, hooks: Callable[[], None]) -> None:
        """Calls hooks(), which wraps the functions of the engine."""
        from . import _capture_interface as capture

        try:
            hooks()
        except Exception as error:  # noqa: BLE001 - must not reach the program
            self.disable_adapter(error)
        else:
            capture.fact(self.engine, self.version)

    def require_attributes(self, owner: object, *names: str) -> None:
        """Raises unless `owner` has all attributes. Called for all of them before the first one is wrapped."""
        missing_names = [name for name in names if not hasattr(owner, name)]
        if missing_names:
            raise AttributeError(f"{getattr(owner, '__name__', owner)} has no {', '.join(missing_names)}")

    def disable_adapter(self, error: Exception) -> None:
        from . import _capture_interface as capture

        if not self.is_enabled:
            return
        self.is_enabled = False
        capture.diagnose(
            "engine_not_captured",
            f"steps of {self.engine} {self.version} are not recorded: {type(error).__name__}: {error}",
            "report them with jm.engine_step, or use a version that the documentation lists",
        )

    def is_recording(self) -> bool:
        return self.is_enabled and _hot.is_recording()

    def guard_hook(self, function: Callable) -> Callable:
        """Wraps `function` to return None while the adapter is off or nothing is recorded, and never to raise."""

        @functools.wraps(function)
        def call(*args: Any, **kwargs: Any) -> Any:
            if not self.is_enabled or not _hot.is_recording():
                return None
            try:
                return function(*args, **kwargs)
            except Exception as error:  # noqa: BLE001 - must not reach the program
                self.disable_adapter(error)
                return None

        return call

    def wrap_with_hooks(
        self,
        owner: object,
        name: str,
        before: Optional[Callable] = None,
        after: Optional[Callable] = None,
        failed: Optional[Callable] = None,
    ) -> None:
        """Wraps owner.name: calls before(*args) before it, and afterwards after(token, result, *args), or
        failed(token, *args) if it raised. `token` is what before() returned. Results and exceptions pass unchanged."""
        original_function = getattr(owner, name)
        guarded_before_hook = self.guard_hook(before) if before else None
        guarded_after_hook = self.guard_hook(after) if after else None
        guarded_failure_hook = self.guard_hook(failed) if failed else None

        @functools.wraps(original_function)
        def call_with_hooks(*args: Any, **kwargs: Any) -> Any:
            token = guarded_before_hook(*args, **kwargs) if guarded_before_hook else None
            try:
                result = original_function(*args, **kwargs)
            except BaseException:
                if guarded_failure_hook:
                    guarded_failure_hook(token, *args, **kwargs)
                raise
            if guarded_after_hook:
                guarded_after_hook(token, result, *args, **kwargs)
            return result

        setattr(owner, name, call_with_hooks)


class RequestWork(NamedTuple):
    """What a step computes for one request."""

    id: Any
    cached_tokens: Optional[int]  # tokens in the KV cache before the step; None: those after the request's last step
    computed_tokens: int  # that the step computes, speculative ones included
    is_prompt: bool
    engine_request: Any = None  # the engine's object of the request


class EngineRequest:
    """A request that a step contained and that has not ended."""

    __slots__ = (
        "id",
        "name",
        "engine_request",
        "cache_length_before",
        "cache_length",
        "rolled_back_tokens",
        "steps_in_flight",
        "outcome",
        "is_reported",
    )

    def __init__(self, id: object, name: str) -> None:
        self.id = id  # of the engine
        self.name = name  # in the recording
        self.engine_request: Any = None
        self.cache_length_before = 0  # tokens in the KV cache before and after its last step
        self.cache_length = 0
        self.rolled_back_tokens = 0  # rejected tokens, that left the cache again
        self.steps_in_flight = 0
        self.outcome: Optional[str] = None  # how it ended
        self.is_reported = False


# Request, cache_length_before, computed_tokens, is_prompt, cached_tokens, preempted_tokens, rolled_back_before.
StepEntry = Tuple[EngineRequest, int, int, bool, int, int, int]


object_id = id  # `id` is a member of RequestWork


class EngineStepLog:
    """The steps of one engine. Used by one thread at a time."""

    def __init__(self, model: Optional[str] = None, prefix: str = "") -> None:
        self.model = model  # label of requests
        self._request_id_prefix = prefix
        self._engine_step = _hot.EngineStep()
        # By id() of the engine's object of the step.
        self._steps_in_flight: Dict[int, Tuple[object, List[StepEntry]]] = {}
        self.requests: Dict[Any, EngineRequest] = {}  # by the engine's id

    def begin_step(self) -> None:
        """The engine starts to schedule a step."""
        if not self._steps_in_flight:
            self._engine_step.__enter__()

    def launch_step(self, step: object, work: Iterable[RequestWork]) -> None:
        """The engine computes a step; `step` is its object of it, which complete_step() receives, too. Without work it is
        not reported."""
        step_entries = []
        for id, cache_length_before, computed_tokens, is_prompt, engine_request in work:
            request = self.requests.get(id)
            cached_tokens = preempted_tokens = 0
            if request is None:
                request = self.requests[id] = EngineRequest(id, self._request_id_prefix + str(id))
                cache_length_before = cache_length_before or 0
                if is_prompt:
                    cached_tokens = cache_length_before
            elif cache_length_before is None:
                cache_length_before = request.cache_length
            elif cache_length_before < request.cache_length_before:
                preempted_tokens = request.cache_length - cache_length_before  # preempted: they were in the cache
            request.engine_request = engine_request
            request.cache_length_before, request.cache_length = (
                cache_length_before,
                cache_length_before + computed_tokens,
            )
            request.steps_in_flight += 1
            step_entries.append(
                (
                    request,
                    cache_length_before,
                    computed_tokens,
                    is_prompt,
                    cached_tokens,
                    preempted_tokens,
                    request.rolled_back_tokens,
                )
            )
        if len(self._steps_in_flight) >= _MAX_STEPS_IN_FLIGHT:
            self.drop_step(self.oldest_step())
        self._steps_in_flight[object_id(step)] = step, step_entries

    def oldest_step(self) -> object:
        """The step that was launched first, of those that have not completed; None without one."""
        return next((step for step, _ in self._steps_in_flight.values()), None)

    def has_step(self, step: object) -> bool:
        return object_id(step) in self._steps_in_flight

    def entries_of_step(self, step: object) -> List[StepEntry]:
        return self._steps_in_flight[object_id(step)][1] if object_id(step) in self._steps_in_flight else []

    def complete_step(self, step: object, results: Iterable[Tuple[int, Optional[str]]]) -> None:
        """The results of a step have arrived: for each request the tokens that were generated, and how it ended, if it
        did. For a step that was not launched, or has completed, it does nothing."""
        if not self.has_step(step):
            return
        step_entries = self._steps_in_flight.pop(object_id(step))[1]
        add_request = self._engine_step.add
        for (
            request,
            cache_length_before,
            computed_tokens,
            is_prompt,
            cached_tokens,
            preempted_tokens,
            rolled_back_before,
        ), (decoded_tokens, outcome) in zip(step_entries, results):
            request_name = request.name
            if preempted_tokens:
                add_request(request_name, context=preempted_tokens, preempted=True)
            request.steps_in_flight -= 1
            if request.outcome is None:
                request.outcome = outcome
            has_ended = request.outcome is not None and request.steps_in_flight == 0
            rejected_tokens = 0 if is_prompt or decoded_tokens >= computed_tokens else computed_tokens - decoded_tokens
            add_request(
                request_name,
                computed_tokens if is_prompt else 0,
                decoded_tokens,
                max(
                    cache_length_before
                    + computed_tokens
                    - rejected_tokens
                    - (request.rolled_back_tokens - rolled_back_before),
                    0,
                ),
                cached_tokens,
                rejected_tokens,
                has_ended and request.outcome == OUTCOME_FINISHED,
                False,
                has_ended and request.outcome == OUTCOME_ABORTED,
                None,
                None if request.is_reported else self.model,
            )
            request.is_reported = True
            request.rolled_back_tokens += rejected_tokens
            request.cache_length -= rejected_tokens
            if has_ended:
                self._forget_request(request)
        if step_entries:
            self._engine_step.__exit__(None, None, None)
        if self._steps_in_flight and step_entries:
            self._engine_step.__enter__()

    def drop_step(self, step: object) -> None:
        """A step was launched and never completes: the engine failed."""
        step_entries = self.entries_of_step(step)
        self._steps_in_flight.pop(object_id(step), None)
        for step_entry in step_entries:
            request = step_entry[0]
            request.steps_in_flight -= 1
            if request.outcome is not None and request.steps_in_flight == 0:
                self._report_request_end(request)

    def drop_all_steps(self) -> None:
        for step, _ in list(self._steps_in_flight.values()):
            self.drop_step(step)

    def end_request(self, id: Any, outcome: str) -> None:
        """A request ends outside of a step, or while steps that contain it are computed."""
        request = self.requests.get(id)
        if request is None or request.outcome is not None:
            return
        request.outcome = outcome
        if request.steps_in_flight == 0:
            self._report_request_end(request)

    def _report_request_end(self, request: EngineRequest) -> None:
        self._forget_request(request)
        if request.is_reported:
            _hot.engine_event(request.name, EVENT_CODES[request.outcome or OUTCOME_ABORTED])

    def _forget_request(self, request: EngineRequest) -> None:
        if self.requests.get(request.id) is request:
            del self.requests[request.id]
