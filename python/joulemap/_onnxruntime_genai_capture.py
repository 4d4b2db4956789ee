# SPDX-License-Identifier: Apache-2.0
"""Captures the generators of ONNX Runtime GenAI in a recorded program: install() is called after onnxruntime_genai has
been imported. Each sequence of a Generator is a request "generator-<number>-<sequence>".

append_tokens() computes a prompt; its step ends with the first generate_next_token(), which only chooses a token. Each
later generate_next_token() is a step. A request ends when is_done() returns True, or with its generator; tokens that are
appended after that are a new request, with the earlier ones cached. Beams that are not returned count as rejected
tokens. A sequence that ends before the others of its batch counts until the batch ends. The Engine of GenAI, which
schedules requests itself, is not captured.
"""

from __future__ import annotations

import functools
import itertools
import weakref
from typing import Any, Dict, List, Optional

from . import _capture_interface as capture
from ._engine_adapter import OUTCOME_FINISHED, EngineAdapter, EngineStepLog, RequestWork

_generator_numbers = itertools.count()


class GeneratorSequences:
    """The requests of one generator."""

    def __init__(self, options: dict, model: Optional[str]) -> None:
        self.log = EngineStepLog(model)
        self._beam_count = max(int(options.get("num_beams", 1) or 1), 1)
        returned_count = max(int(options.get("num_return_sequences", 1) or 1), 1)
        self._rows_per_sequence = max(self._beam_count, returned_count)  # rows of each sequence
        self._returned_sequence_count = returned_count
        self._batch_size = max(int(options.get("batch_size", 1) or 1), 1)
        self._pending_prompt: Optional[List[RequestWork]] = None  # computed, but no token chosen yet
        self.has_ended = True
        self._request_ids: List[str] = []

    def begin(self) -> None:
        self.log.begin_step()

    def add_prompt_tokens(self, tokens_before: int, tokens_now: int) -> None:
        """The generator has computed `tokens_now - tokens_before` tokens of each sequence."""
        self.complete_prompt(0)
        if tokens_now <= tokens_before:
            return
        if self.has_ended:
            generator_number = next(_generator_numbers)
            self._request_ids = [f"generator-{generator_number}-{index}" for index in range(self._batch_size)]
            self.has_ended = False
        self._pending_prompt = [
            RequestWork(id, tokens_before, tokens_now - tokens_before, True) for id in self._request_ids
        ]
        self.log.launch_step(self._pending_prompt, self._pending_prompt)

    def complete_prompt(self, decoded_tokens: int) -> bool:
        """Whether a prompt was waiting for its first token."""
        prompt_work, self._pending_prompt = self._pending_prompt, None
        if prompt_work is None:
            return False
        self.log.complete_step(prompt_work, [(decoded_tokens, None)] * len(prompt_work))
        return True

    def add_generated_tokens(self, tokens_before: int, tokens_now: int) -> None:
        decoded_tokens = max(tokens_now - tokens_before, 0)
        if self.complete_prompt(min(decoded_tokens, 1) * self._returned_sequence_count) or decoded_tokens == 0:
            return
        computed_tokens = max(decoded_tokens * self._rows_per_sequence, 1)
        request_work = [RequestWork(id, tokens_before - 1, computed_tokens, False) for id in self._request_ids]
        self.log.launch_step(request_work, request_work)
        self.log.complete_step(
            request_work, [(decoded_tokens * self._returned_sequence_count, None)] * len(request_work)
        )

    def end(self) -> None:
        self.complete_prompt(0)
        self.has_ended = True
        for id in self._request_ids:
            self.log.end_request(id, OUTCOME_FINISHED)
        self._request_ids = []


class GeneratorRegistry:
    """The generators of the program. They cannot hold attributes and are identified by weak references."""

    def __init__(self, adapter: EngineAdapter) -> None:
        self._adapter = adapter
        self._sequences: Dict[int, GeneratorSequences] = {}

    def find_sequences(self, generator: Any) -> Optional[GeneratorSequences]:
        return self._sequences.get(id(generator))

    def add_generator(self, generator: Any, options: dict, model: Optional[str]) -> None:
        generator_id = id(generator)
        sequences = self._sequences[generator_id] = GeneratorSequences(options, model)
        weakref.finalize(generator, self._forget_generator, generator_id, sequences).atexit = False

    def _forget_generator(self, generator_id: int, sequences: GeneratorSequences) -> None:
        """Also called while nothing is recorded: a later generator may have the same id()."""
        if self._sequences.get(generator_id) is sequences:
            del self._sequences[generator_id]
        self._adapter.guard_hook(sequences.end)()


def _read_search_options(params: Any) -> dict:
    get_options = getattr(params, "get_search_options", None)
    return get_options() if get_options is not None else {}


def install(module: Any) -> None:
    generator_type = module.Generator
    adapter = EngineAdapter("ONNX Runtime GenAI", "onnxruntime-genai")
    generators = GeneratorRegistry(adapter)
    engine_warnings: List[bool] = []
    append_method_names = [
        append_method_name
        for append_method_name in ("append_tokens", "set_inputs")
        if hasattr(generator_type, append_method_name)
    ]

    def after_init(token: Any, result: Any, generator: Any, model: Any, params: Any, *args: Any, **kwargs: Any) -> None:
        generators.add_generator(generator, _read_search_options(params), getattr(model, "type", None))

    def before_append_tokens(generator: Any, *args: Any, **kwargs: Any) -> Optional[int]:
        sequences = generators.find_sequences(generator)
        if sequences is None:
            return None
        sequences.complete_prompt(0)
        sequences.begin()
        return generator.token_count()

    def after_append_tokens(count: Optional[int], result: Any, generator: Any, *args: Any, **kwargs: Any) -> None:
        sequences = generators.find_sequences(generator)
        if sequences is not None and count is not None:
            sequences.add_prompt_tokens(count, generator.token_count())

    def before_generate(generator: Any) -> Optional[int]:
        sequences = generators.find_sequences(generator)
        if sequences is None:
            return None
        sequences.begin()
        return generator.token_count()

    def after_generate(count: Optional[int], result: Any, generator: Any) -> None:
        sequences = generators.find_sequences(generator)
        if sequences is not None and count is not None:
            sequences.add_generated_tokens(count, generator.token_count())

    def after_is_done(token: Any, is_done: bool, generator: Any) -> None:
        sequences = generators.find_sequences(generator) if is_done else None
        if sequences is not None and not sequences.has_ended:
            sequences.end()

    def before_rewind(generator: Any, *args: Any, **kwargs: Any) -> None:
        sequences = generators.find_sequences(generator)
        if sequences is not None:
            sequences.end()

    def before_engine_run(engine: Any, *args: Any, **kwargs: Any) -> None:
        if not engine_warnings:
            engine_warnings.append(True)
            message = "steps of onnxruntime_genai.Engine are not recorded"
            capture.diagnose("engine_not_captured", message, "report them with jm.engine_step, or use a Generator")

    def wrap_engine_functions() -> None:
        adapter.require_attributes(generator_type, "append_tokens", "generate_next_token", "is_done", "token_count")
        original_init = generator_type.__init__

        @functools.wraps(original_init)
        def captured_init(self: Any, *args: Any, **kwargs: Any) -> None:
            original_init(self, *args, **kwargs)
            if adapter.is_recording():
                adapter.guard_hook(after_init)(None, None, self, *args, **kwargs)

        for name in append_method_names:
            adapter.wrap_with_hooks(generator_type, name, before_append_tokens, after_append_tokens)
        adapter.wrap_with_hooks(generator_type, "generate_next_token", before_generate, after_generate)
        adapter.wrap_with_hooks(generator_type, "is_done", None, after_is_done)
        if hasattr(generator_type, "rewind_to"):
            adapter.wrap_with_hooks(generator_type, "rewind_to", before_rewind)
        generator_type.__init__ = captured_init
        if hasattr(getattr(module, "Engine", None), "run"):
            adapter.wrap_with_hooks(module.Engine, "run", before_engine_run)

    adapter.install(wrap_engine_functions)
