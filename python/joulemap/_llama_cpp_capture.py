# SPDX-License-Identifier: Apache-2.0
"""Captures llama-cpp-python in a recorded program: install() is called after llama_cpp.llama has been imported.

Each llama_decode of a Llama object is a step: of a completion (create_completion, chat), of generate(), of eval() calls
between resets, or of embeddings. A prompt longer than n_batch takes several steps. A step lasts until its token is
sampled, which waits for the GPU; one with draft tokens, until the next step. Tokens that are reused from the request
before (the longest common prefix) count as cached. A prompt that is cached completely needs no step: its first token is
in none. A stream that the program closes before its last chunk counts as aborted, one without a stream always finishes.

Calls of llama_cpp.llama_decode without a Llama object are not captured.
"""

from __future__ import annotations

import functools
import itertools
import os
import weakref
from typing import Any, Iterator, List, Optional

from ._engine_adapter import OUTCOME_ABORTED, OUTCOME_FINISHED, EngineAdapter, EngineStepLog, RequestWork

_request_numbers = itertools.count()


class GenerationRequest:
    """A request: calls of eval() that continue one another."""

    def __init__(self, kind: str) -> None:
        self.id = f"{kind}-{next(_request_numbers)}"
        self.has_begun = False
        self.has_sampled = False


class RunningCompletion:
    """A running create_completion()."""

    def __init__(self, is_stream: bool) -> None:
        self.is_stream = is_stream
        self.has_finished = False  # its last chunk has been returned
        self.generation: Optional[GenerationRequest] = None


class DecodeStep:
    """A llama_decode whose tokens are not yet sampled."""

    def __init__(self, generations: List[GenerationRequest], width: int) -> None:
        self.generations = generations
        self.max_sampled_tokens = width  # tokens that can be sampled from it
        self.sampled_tokens = 0


class LlamaRequests:
    """The requests of one Llama object."""

    def __init__(self, llama: Any) -> None:
        self.log = EngineStepLog(os.path.basename(str(getattr(llama, "model_path", "") or "")) or None)
        self._llama = weakref.ref(llama)
        self._pending_step: Optional[DecodeStep] = None
        self.is_evaluating = False
        self.evaluated_tokens = 0  # of the running eval(); a step computes at most n_batch of them
        self.is_embedding = False
        self.completion: Optional[RunningCompletion] = None
        self.generation: Optional[GenerationRequest] = None  # of generate(), while it runs
        self._direct_eval_request: Optional[GenerationRequest] = None  # of eval() without generate()

    def find_or_begin_generation(self) -> GenerationRequest:
        if self.generation is not None:
            return self.generation
        llama = self._llama()
        if self._direct_eval_request is None or llama is None or llama.n_tokens == 0:
            self.end_direct_eval()
            self._direct_eval_request = GenerationRequest("eval")
        return self._direct_eval_request

    def end_direct_eval(self) -> None:
        direct_request, self._direct_eval_request = self._direct_eval_request, None
        if direct_request is not None:
            self.finish_generation(direct_request, OUTCOME_FINISHED)

    def before_decode(self) -> None:
        self.complete_pending_step(None)
        self.log.begin_step()

    def after_decode(self, tokens: int) -> None:
        generation, llama = self.find_or_begin_generation(), self._llama()
        cached_tokens = llama.n_tokens if llama is not None else None
        # A program that calls eval() may sample without sample(): then its later calls have a single token.
        is_prompt = not generation.has_sampled and (
            generation is not self._direct_eval_request or self.evaluated_tokens > 1 or not generation.has_begun
        )
        generation.has_begun = True
        self._pending_step = DecodeStep([generation], 1 if is_prompt else tokens)
        if generation is self._direct_eval_request and not is_prompt:
            self._pending_step.sampled_tokens = 1  # the program may sample without sample()
        self.log.launch_step(self._pending_step, [RequestWork(generation.id, cached_tokens, tokens, is_prompt)])

    def after_embedding(self, lengths: List[int]) -> None:
        step = self._pending_step = DecodeStep([GenerationRequest("embed") for _ in lengths], 0)
        self.log.launch_step(
            step, [RequestWork(generation.id, 0, tokens, True) for generation, tokens in zip(step.generations, lengths)]
        )

    def on_sample(self) -> None:
        generation, step = self.generation or self._direct_eval_request, self._pending_step
        if generation is not None:
            generation.has_sampled = True
        if step is not None:
            step.sampled_tokens = min(step.sampled_tokens + 1, step.max_sampled_tokens)
            if step.max_sampled_tokens == 1:
                self.complete_pending_step(None)

    def complete_pending_step(self, outcome: Optional[str]) -> None:
        """The step has ended."""
        step, self._pending_step = self._pending_step, None
        if step is not None:
            self.log.complete_step(step, [(step.sampled_tokens, outcome)] * len(step.generations))

    def finish_generation(self, generation: GenerationRequest, outcome: str) -> None:
        step = self._pending_step
        if step is not None and generation in step.generations:
            self.complete_pending_step(outcome)
        self.log.end_request(generation.id, outcome)


def find_or_create_requests(llama: Any) -> LlamaRequests:
    requests = getattr(llama, "_joulemap_requests", None)
    if requests is None:
        requests = llama._joulemap_requests = LlamaRequests(llama)
        llama._ctx._joulemap_requests = requests
    return requests


def _before_eval(llama: Any, tokens: Any, *args: Any, **kwargs: Any) -> None:
    requests = find_or_create_requests(llama)
    requests.is_evaluating, requests.evaluated_tokens = True, len(tokens)


def _after_eval(token: Any, result: Any, llama: Any, *args: Any, **kwargs: Any) -> None:
    find_or_create_requests(llama).is_evaluating = False


def _on_failed_eval(token: Any, llama: Any, *args: Any, **kwargs: Any) -> None:
    find_or_create_requests(llama).is_evaluating = False


def _before_embed(llama: Any, *args: Any, **kwargs: Any) -> None:
    find_or_create_requests(llama).is_embedding = True


def _after_embed(token: Any, result: Any, llama: Any, *args: Any, **kwargs: Any) -> None:
    find_or_create_requests(llama).is_embedding = False
    find_or_create_requests(llama).complete_pending_step(OUTCOME_FINISHED)


def _on_failed_embed(token: Any, llama: Any, *args: Any, **kwargs: Any) -> None:
    find_or_create_requests(llama).is_embedding = False
    find_or_create_requests(llama).complete_pending_step(OUTCOME_ABORTED)


def _before_decode(context: Any, batch: Any) -> None:
    requests = getattr(context, "_joulemap_requests", None)
    if requests is not None and requests.is_embedding:
        requests.complete_pending_step(OUTCOME_FINISHED)
        requests.log.begin_step()
    elif requests is not None and requests.is_evaluating:
        requests.before_decode()


def _after_decode(token: Any, result: Any, context: Any, batch: Any) -> None:
    requests = getattr(context, "_joulemap_requests", None)
    if requests is not None and requests.is_embedding:
        requests.after_embedding(_count_sequence_tokens(batch))
    elif requests is not None and requests.is_evaluating:
        requests.after_decode(batch.n_tokens())


def _count_sequence_tokens(batch: Any) -> List[int]:
    token_counts: dict = {}
    for token_index in range(batch.n_tokens()):
        sequence_id = batch.batch.seq_id[token_index][0]
        token_counts[sequence_id] = token_counts.get(sequence_id, 0) + 1
    return list(token_counts.values())


def _after_sample(token: Any, result: Any, llama: Any, *args: Any, **kwargs: Any) -> None:
    find_or_create_requests(llama).on_sample()


def _before_reset(llama: Any) -> None:
    requests = find_or_create_requests(llama)
    if requests.generation is None:
        requests.end_direct_eval()


class GeneratorTracer:
    """Runs generators of Llama between calls that note which request computes."""

    def __init__(self, adapter: EngineAdapter) -> None:
        self.begin = adapter.guard_hook(self._begin_generation)
        self.resume = adapter.guard_hook(self._resume_generation)
        self.pause = adapter.guard_hook(self._pause_generation)
        self.end = adapter.guard_hook(self._end_generation)
        self.begin_completion = adapter.guard_hook(self._begin_completion)
        self.on_chunk = adapter.guard_hook(self._on_chunk)
        self.end_completion = adapter.guard_hook(self._end_completion)

    def _begin_generation(self, llama: Any) -> GenerationRequest:
        requests = find_or_create_requests(llama)
        requests.end_direct_eval()
        generation = GenerationRequest("generate" if requests.completion is None else "completion")
        if requests.completion is not None:
            requests.completion.generation = generation
        return generation

    def _resume_generation(self, llama: Any, generation: Optional[GenerationRequest]) -> None:
        find_or_create_requests(llama).generation = generation

    def _pause_generation(self, llama: Any) -> None:
        find_or_create_requests(llama).generation = None

    def _end_generation(self, llama: Any, generation: Optional[GenerationRequest], outcome: str) -> None:
        requests = find_or_create_requests(llama)
        requests.generation = None
        completion = requests.completion
        is_own_generation = completion is not None and completion.generation is generation
        if generation is None or (is_own_generation and outcome == OUTCOME_FINISHED):
            return  # the completion knows how it ended
        requests.finish_generation(generation, outcome)

    def _begin_completion(self, llama: Any, is_stream: bool) -> RunningCompletion:
        return RunningCompletion(is_stream)

    def _on_chunk(self, completion: Optional[RunningCompletion], chunk: Any) -> None:
        if completion is not None:
            choice = chunk["choices"][0]
            completion.has_finished = not completion.is_stream or choice.get("finish_reason") is not None

    def _end_completion(self, llama: Any, completion: Optional[RunningCompletion], is_closed: bool) -> None:
        if completion is not None and completion.generation is not None:
            outcome = OUTCOME_ABORTED if is_closed and not completion.has_finished else OUTCOME_FINISHED
            find_or_create_requests(llama).finish_generation(completion.generation, outcome)

    def trace_generate(self, llama: Any, tokens: Iterator[int]) -> Iterator[int]:
        generation = self.begin(llama)
        outcome, sent_value = OUTCOME_ABORTED, None
        try:
            while True:
                self.resume(llama, generation)
                try:
                    token = tokens.send(sent_value)  # type: ignore[attr-defined]
                except StopIteration:
                    outcome = OUTCOME_FINISHED
                    return
                finally:
                    self.pause(llama)
                sent_value = yield token
        except GeneratorExit:
            outcome = OUTCOME_FINISHED  # how programs end a generation: generate() itself does not stop
            raise
        finally:
            tokens.close()  # type: ignore[attr-defined]
            self.end(llama, generation, outcome)

    def trace_completion(self, llama: Any, chunks: Iterator[Any], is_stream: bool) -> Iterator[Any]:
        completion = self.begin_completion(llama, is_stream)
        is_closed = True
        try:
            while True:
                self._set_completion(llama, completion)
                try:
                    chunk = next(chunks)
                except StopIteration:
                    is_closed = False
                    return
                finally:
                    self._set_completion(llama, None)
                self.on_chunk(completion, chunk)
                yield chunk
        finally:
            self._set_completion(llama, completion)
            chunks.close()  # type: ignore[attr-defined]
            self._set_completion(llama, None)
            self.end_completion(llama, completion, is_closed)

    def _set_completion(self, llama: Any, completion: Optional[RunningCompletion]) -> None:
        requests = getattr(llama, "_joulemap_requests", None)
        if requests is not None:
            requests.completion = completion


def install(module: Any) -> None:
    llama_class = module.Llama
    context_class = module.internals.LlamaContext
    adapter = EngineAdapter("llama-cpp-python", "llama-cpp-python")

    def wrap_engine_functions() -> None:
        adapter.require_attributes(llama_class, "eval", "sample", "generate", "_create_completion", "embed", "reset")
        adapter.require_attributes(context_class, "decode")
        adapter.require_attributes(module.internals.LlamaBatch, "n_tokens")
        adapter.wrap_with_hooks(llama_class, "eval", _before_eval, _after_eval, _on_failed_eval)
        adapter.wrap_with_hooks(llama_class, "embed", _before_embed, _after_embed, _on_failed_embed)
        adapter.wrap_with_hooks(llama_class, "sample", None, _after_sample)
        adapter.wrap_with_hooks(llama_class, "reset", _before_reset)
        adapter.wrap_with_hooks(context_class, "decode", _before_decode, _after_decode)
        generator_tracer = GeneratorTracer(adapter)
        original_generate, original_completion = llama_class.generate, llama_class._create_completion

        @functools.wraps(original_generate)
        def captured_generate(self: Any, *args: Any, **kwargs: Any) -> Any:
            tokens = original_generate(self, *args, **kwargs)
            return generator_tracer.trace_generate(self, tokens) if adapter.is_recording() else tokens

        @functools.wraps(original_completion)
        def captured_completion(self: Any, *args: Any, **kwargs: Any) -> Any:
            chunks = original_completion(self, *args, **kwargs)
            if not adapter.is_recording():
                return chunks
            adapter.guard_hook(find_or_create_requests)(self)
            return generator_tracer.trace_completion(self, chunks, bool(kwargs.get("stream")))

        llama_class.generate, llama_class._create_completion = captured_generate, captured_completion

    adapter.install(wrap_engine_functions)
