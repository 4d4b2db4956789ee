# SPDX-License-Identifier: Apache-2.0
"""Captures continuous batching of Hugging Face transformers (generate_batch, ContinuousBatchingManager) in a recorded
program: install() is called after transformers.generation.continuous_batching.continuous_api has been imported.

A step lasts from ContinuousBatchProcessor.prepare_next_batch() to the end of update_batch(). What it computes is read
when its tensors are prepared; what it generated, from the requests. With asynchronous batching, a request may be in one
more step after it has ended: its token is rejected. A request whose KV cache is dropped (soft reset) computes it again;
one whose cache is offloaded to the CPU does not.

The loop updates an asynchronous step only after it has launched the next one. If all requests of a step have ended, that
may be much later: such a step ends when the loop finds no further work.
"""

from __future__ import annotations

import itertools
import sys
import threading
from typing import Any, List, Optional, Tuple

from ._engine_adapter import ABORTED, FINISHED, EngineAdapter, StepLog, RequestWork

_processor_numbers = itertools.count()  # of batch processors: each numbers its requests from 0
_step_in_preparation = threading.local()  # what the step that this thread prepares computes, and its log
_update = threading.local()  # the ProcessorSteps whose results this thread reads, and what it has read


class ProcessorSteps:
    """The steps of one batch processor, identified by their lists of requests."""

    def __init__(self, processor: Any) -> None:
        self.log = StepLog(None, f"batch-{next(_processor_numbers)}-")
        # Every rank of tensor parallelism computes the same batches. Only the one with the queue of requests reports.
        self.is_reporter = getattr(processor, "input_queue", None) is not None

    def generated_counts(self, step: Any) -> List[Tuple[int, bool]]:
        """For each request of the step: tokens generated before it, and whether it has ended."""
        return [_generated_tokens_and_end(entry[0].engine_request) for entry in self.log.entries_of_step(step)]

    def complete_step(self, step: Any, before: List[Tuple[int, bool]]) -> None:
        results: List[Tuple[int, Optional[str]]] = []
        for entry, (count_before, had_ended) in zip(self.log.entries_of_step(step), before):
            count, has_ended = _generated_tokens_and_end(entry[0].engine_request)
            results.append((max(count - count_before, 0), FINISHED if has_ended and not had_ended else None))
        self.log.complete_step(step, results)

    def complete_steps_without_requests(self) -> None:
        """Completes the oldest steps while all their requests have ended."""
        while True:
            step = self.log.oldest_step()
            entries = self.log.entries_of_step(step)
            if not entries or any(entry[0].outcome is None for entry in entries):
                return
            self.log.complete_step(step, [(0, None)] * len(entries))


def _generated_tokens_and_end(state: Any) -> Tuple[int, bool]:
    return len(state.generated_tokens), state.status.name == "FINISHED"


def _steps_of(processor: Any) -> ProcessorSteps:
    steps = getattr(processor, "_joulemap_steps", None)
    if steps is None:
        steps = processor._joulemap_steps = ProcessorSteps(processor)
    return steps


def _before_prepare(processor: Any) -> None:
    steps = _steps_of(processor)
    _step_in_preparation.work, _step_in_preparation.log = None, steps.log
    steps.log.begin_step()


def _before_clear(scheduler: Any) -> List[str]:
    return list(scheduler._requests_to_cancel)


def _after_clear(cancelled: Optional[List[str]], states: Any, scheduler: Any) -> None:
    log = getattr(_step_in_preparation, "log", None)
    for id in cancelled or () if log is not None else ():
        log.end_request(id, ABORTED)


def _before_tensors(tensors: Any, requests_in_batch: Any, *args: Any, **kwargs: Any) -> None:
    work = []
    for future in requests_in_batch:
        state = future.state
        start = state.position_offset
        is_prompt = start < len(state.initial_tokens)
        work.append(RequestWork(state.request_id, start, future.query_length, is_prompt, state))
    _step_in_preparation.work = work


def _after_tensors(token: Any, result: Any, tensors: Any, *args: Any, **kwargs: Any) -> None:
    _step_in_preparation.step = tensors.requests_in_batch  # prepare_batch_update() returns this list


def _after_prepare(token: Any, has_requests: Any, processor: Any) -> None:
    work, _step_in_preparation.work = getattr(_step_in_preparation, "work", None), None
    step, _step_in_preparation.step = getattr(_step_in_preparation, "step", None), None
    _step_in_preparation.log = None
    steps = _steps_of(processor)
    if not has_requests:
        steps.complete_steps_without_requests()
    elif work and steps.is_reporter:
        steps.log.launch_step(step, work)


def _before_compute(processor: Any, model: Any) -> None:
    _steps_of(processor).log.model = type(model).__name__


def _before_update(processor: Any) -> None:
    _update.steps, _update.read = _steps_of(processor), None


def _after_read(token: Any, result: Any, tensors: Any) -> None:
    steps = getattr(_update, "steps", None)
    if steps is not None:
        step = result[0]
        _update.read = step, steps.generated_counts(step)


def _after_update(token: Any, result: Any, processor: Any) -> None:
    steps, _update.steps = getattr(_update, "steps", None), None
    read, _update.read = getattr(_update, "read", None), None
    if steps is not None and read is not None:
        steps.complete_step(*read)


def _on_error(processor: Any, error: Any, state: Any) -> None:
    _steps_of(processor).log.end_request(state.request_id, ABORTED)


def _before_fail(processor: Any, error: Any) -> None:
    _steps_of(processor).log.drop_all_steps()  # the loop has ended


def install(module: Any) -> None:
    processor = module.ContinuousBatchProcessor
    package = processor.__module__.rpartition(".")[0]
    adapter = EngineAdapter("transformers continuous batching", "transformers")

    def hooks() -> None:
        tensors = sys.modules[package + ".input_outputs"].ContinuousBatchingIOs
        scheduler = sys.modules[package + ".scheduler"].Scheduler
        adapter.require_attributes(
            processor, "prepare_next_batch", "_generation_step", "update_batch", "_handle_request_error"
        )
        adapter.require_attributes(processor, "fail_all_requests")
        adapter.require_attributes(tensors, "prepare_batch_tensors", "prepare_batch_update")
        adapter.require_attributes(scheduler, "clear_cancelled_requests")
        adapter.wrap_with_hooks(processor, "prepare_next_batch", _before_prepare, _after_prepare)
        adapter.wrap_with_hooks(scheduler, "clear_cancelled_requests", _before_clear, _after_clear)
        adapter.wrap_with_hooks(tensors, "prepare_batch_tensors", _before_tensors, _after_tensors)
        adapter.wrap_with_hooks(tensors, "prepare_batch_update", None, _after_read)
        adapter.wrap_with_hooks(processor, "_generation_step", _before_compute)
        adapter.wrap_with_hooks(processor, "update_batch", _before_update, _after_update)
        adapter.wrap_with_hooks(processor, "_handle_request_error", _on_error)
        adapter.wrap_with_hooks(processor, "fail_all_requests", _before_fail)

    adapter.install(hooks)
