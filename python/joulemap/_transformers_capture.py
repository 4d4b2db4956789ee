# SPDX-License-Identifier: Apache-2.0
"""Captures `generate` of Hugging Face transformers in a recorded program: install() is called after
transformers.generation.utils has been imported. Each forward pass of the generating model is an engine step, and each
sequence of its batch a request "generate-<call>-<index>"; `joulemap report --by request` and `--by token` show them.

A step lasts from a forward pass to the next one: choosing tokens and the check for the end, which waits for the GPU,
belong to it. Beams of a sequence that are not its output count as rejected tokens, as do candidates that assisted
decoding rejects. A sequence that ends before the others of its batch counts until the batch ends: its padding is
computed. Tokens in a KV cache that the program passes count as cached. A `generate` inside another (of an assistant
model) is part of the outer step. If `generate` raises, its requests count as aborted.

Several threads may generate with one model. Therefore the functions of a model are wrapped in its class, and report to
the call of generate() in their thread.
"""

from __future__ import annotations

import functools
import inspect
import itertools
import threading
from typing import Any, Callable, List, Optional

from . import _hot
from ._engine_adapter import OUTCOME_ABORTED, EVENT_CODES, OUTCOME_FINISHED, EngineAdapter

_PREPARE_INPUTS_METHOD = "prepare_inputs_for_generation"  # called before each forward pass, and never compiled
_generate_call_numbers = itertools.count()
_current_generation = threading.local()  # the GenerateCall of this thread
_wrap_lock = threading.Lock()


class GenerateCall:
    """The steps of one call of generate()."""

    def __init__(self, model: Any) -> None:
        self.model = model
        self.is_preparing = False
        self._request_prefix = f"generate-{next(_generate_call_numbers)}"
        self._model_name = type(model).__name__
        self._engine_step: Optional[Any] = None
        self._is_reported = False
        self._sequence_count: Optional[int] = None
        self._beam_count = 1
        self._attention_mask: Optional[Any] = None  # on the CPU: sequence x column, 0 for padding
        self._remaining_prompt_columns: Optional[int] = None  # of the prompt, that no step has computed
        self._cached_tokens = 0  # columns in the cache that the program passed
        self._cached_counts: Optional[List[int]] = None  # those that are no padding, by sequence
        self._context_length = 0  # tokens in the cache after this step
        self._computed_tokens = 0  # tokens that this step computes for each row
        self._new_tokens = 0  # that this step generated for each sequence
        self._is_prefill = True

    def set_inputs(self, inputs: Any, attention_mask: Any, cache: Any, beam_count: int) -> None:
        """Reads the lengths of prompts, once per call, before the GPU is busy."""
        self._beam_count = max(beam_count, 1)
        get_cache_length = getattr(cache, "get_seq_length", None)
        self._cached_tokens = self._context_length = int(get_cache_length()) if get_cache_length is not None else 0
        has_mask = attention_mask is not None and attention_mask.dim() == 2
        prompt_inputs = attention_mask if has_mask else inputs
        if prompt_inputs is None or prompt_inputs.dim() < 2:
            return
        self._sequence_count = prompt_inputs.shape[0]
        if getattr(getattr(self.model, "config", None), "is_encoder_decoder", False):
            return  # these are the inputs of the encoder
        if has_mask:
            self._attention_mask = attention_mask.detach().cpu()
        # Mask and inputs contain the cached tokens, too, unless the program passed only the new ones.
        first_column = self._cached_tokens if prompt_inputs.shape[1] > self._cached_tokens else 0
        self._remaining_prompt_columns = prompt_inputs.shape[1] - first_column
        if self._attention_mask is not None and first_column:
            self._cached_counts = _unpadded_token_counts(self._attention_mask[:, :first_column])

    def on_forward(self, inputs: Any) -> None:
        input_names = ("decoder_input_ids", "input_ids", "inputs_embeds")
        input_tokens = next((inputs[name] for name in input_names if inputs.get(name) is not None), None)
        self.end_step(None)
        if input_tokens is None:
            return
        row_count = input_tokens.shape[0]
        if self._sequence_count is None:
            self._sequence_count = max(row_count // self._beam_count, 1)
        elif row_count % self._sequence_count == 0:
            self._beam_count = row_count // self._sequence_count
        self._computed_tokens, self._new_tokens = input_tokens.shape[1], 0
        self._engine_step = _hot.EngineStep()
        self._engine_step.__enter__()

    def on_new_tokens(self, args: tuple, kwargs: dict) -> None:
        """`num_new_tokens` of _update_model_kwargs_for_generation(outputs, model_kwargs, is_encoder_decoder, ...). A
        tensor in assisted decoding, which has waited for the GPU by then."""
        self._new_tokens = int(kwargs.get("num_new_tokens", args[3] if len(args) > 3 else 1))

    def end_step(self, outcome: Optional[str]) -> None:
        """`outcome`: how the requests end with this step, if they do."""
        step, self._engine_step = self._engine_step, None
        if step is None:
            return
        accepted_tokens = self._new_tokens
        prompt_columns, prompt_counts = self._next_prompt_columns() if self._is_prefill else (0, None)
        # The first token of a prompt needs no further computation.
        candidate_tokens = (self._computed_tokens - prompt_columns) * self._beam_count
        accepted_computed_tokens = max(accepted_tokens - 1, 0) if self._is_prefill else accepted_tokens
        self._context_length += prompt_columns + accepted_computed_tokens
        for sequence_index in range(self._sequence_count or 0):
            step.add(
                self._request_name(sequence_index),
                prompt=prompt_counts[sequence_index] if prompt_counts is not None else prompt_columns,
                decoded=accepted_tokens,
                cached=0 if self._is_reported else self._cached_tokens_of_sequence(sequence_index),
                rejected=max(candidate_tokens - accepted_computed_tokens, 0),
                context=self._context_length,
                finished=outcome == OUTCOME_FINISHED,
                aborted=outcome == OUTCOME_ABORTED,
                model=self._model_name,
            )
        self._is_reported = True
        if accepted_tokens > 0:
            self._is_prefill = False
        step.__exit__(None, None, None)

    def _next_prompt_columns(self) -> tuple[int, Optional[List[int]]]:
        """Columns of the prompt that this step computes, and for each sequence those that are no padding."""
        if self._remaining_prompt_columns is None:
            return self._computed_tokens, None
        column_count = min(self._remaining_prompt_columns, self._computed_tokens)
        remaining_before, self._remaining_prompt_columns = (
            self._remaining_prompt_columns,
            self._remaining_prompt_columns - column_count,
        )
        if self._attention_mask is None:
            return column_count, None
        first_column = self._attention_mask.shape[1] - remaining_before
        return column_count, _unpadded_token_counts(self._attention_mask[:, first_column : first_column + column_count])

    def _cached_tokens_of_sequence(self, sequence_index: int) -> int:
        return self._cached_tokens if self._cached_counts is None else self._cached_counts[sequence_index]

    def _request_name(self, sequence_index: int) -> str:
        return f"{self._request_prefix}-{sequence_index}"

    def end(self, outcome: str) -> None:
        if self._engine_step is not None:
            self.end_step(outcome)
        elif self._is_reported:
            for sequence_index in range(self._sequence_count or 0):
                _hot.engine_event(self._request_name(sequence_index), EVENT_CODES[outcome])


def _unpadded_token_counts(mask: Any) -> List[int]:
    """By sequence. Masks may have floats."""
    return (mask != 0).sum(1).tolist()


class ModelHooks:
    """Calls GenerateCall before each forward pass of a model."""

    def __init__(self, adapter: EngineAdapter) -> None:
        self._on_forward = adapter.guard_hook(GenerateCall.on_forward)

    def wrap_class(self, model_type: type) -> None:
        """Wraps the function of the class, for good. A function that is inherited is wrapped in the subclass."""
        with _wrap_lock:
            original_prepare = getattr(model_type, _PREPARE_INPUTS_METHOD)
            if not inspect.isfunction(original_prepare) or hasattr(original_prepare, "_joulemap_wrapped"):
                return

            @functools.wraps(original_prepare)
            def prepare(model: Any, *args: Any, **kwargs: Any) -> Any:
                return self._prepare_forward_inputs(model, original_prepare, (model, *args), kwargs)

            prepare._joulemap_wrapped = True  # type: ignore[attr-defined]
            setattr(model_type, _PREPARE_INPUTS_METHOD, prepare)

    def wrap_attribute(self, model: Any) -> Optional[Callable]:
        """Wraps the function if the model has its own, as models of PEFT have, until unwrap_attribute()."""
        with _wrap_lock:
            original_prepare = getattr(model, _PREPARE_INPUTS_METHOD)
            has_own_method = _PREPARE_INPUTS_METHOD in vars(model)
            if not has_own_method and hasattr(original_prepare, "_joulemap_wrapped"):
                return None
            if getattr(original_prepare, "_joulemap_model", None) is model:
                original_prepare._joulemap_user_count += 1
                return original_prepare

            @functools.wraps(original_prepare)
            def prepare(*args: Any, **kwargs: Any) -> Any:
                return self._prepare_forward_inputs(model, original_prepare, args, kwargs)

            prepare._joulemap_model = model  # type: ignore[attr-defined]
            prepare._joulemap_user_count = 1  # type: ignore[attr-defined]
            prepare._joulemap_hidden_method = original_prepare if has_own_method else None  # type: ignore[attr-defined]
            setattr(model, _PREPARE_INPUTS_METHOD, prepare)
            return prepare

    def unwrap_attribute(self, wrapper: Any) -> None:
        with _wrap_lock:
            wrapper._joulemap_user_count -= 1
            model, hidden_method = wrapper._joulemap_model, wrapper._joulemap_hidden_method
            if wrapper._joulemap_user_count > 0 or vars(model).get(_PREPARE_INPUTS_METHOD) is not wrapper:
                return
            if hidden_method is not None:
                setattr(model, _PREPARE_INPUTS_METHOD, hidden_method)
            else:
                delattr(model, _PREPARE_INPUTS_METHOD)

    def _prepare_forward_inputs(self, model: Any, original_prepare: Callable, args: tuple, kwargs: dict) -> Any:
        generation = getattr(_current_generation, "generation", None)
        if generation is None or generation.model is not model or generation.is_preparing:
            return original_prepare(*args, **kwargs)  # is_preparing: the function of a subclass calls that of its base
        generation.is_preparing = True
        try:
            forward_inputs = original_prepare(*args, **kwargs)
        finally:
            generation.is_preparing = False
        self._on_forward(generation, forward_inputs)
        return forward_inputs


def _begin_generation(model: Any, inputs: Any, kwargs: dict) -> GenerateCall:
    generation = GenerateCall(model)
    generation_config = kwargs.get("generation_config") or getattr(model, "generation_config", None)
    beam_count = kwargs.get("num_beams") or getattr(generation_config, "num_beams", 1) or 1
    return_count = kwargs.get("num_return_sequences") or getattr(generation_config, "num_return_sequences", 1) or 1
    prompt_inputs = next(
        (value for value in (inputs, kwargs.get("input_ids"), kwargs.get("inputs_embeds")) if value is not None), None
    )
    generation.set_inputs(
        prompt_inputs, kwargs.get("attention_mask"), kwargs.get("past_key_values"), max(beam_count, return_count)
    )
    return generation


def install(utils: Any) -> None:
    mixin_class = utils.GenerationMixin
    adapter = EngineAdapter("transformers generate", "transformers")
    model_hooks = ModelHooks(adapter)

    def before_generate(model: Any, inputs: Any, kwargs: dict) -> tuple[GenerateCall, Optional[Callable]]:
        generation = _begin_generation(model, inputs, kwargs)
        model_hooks.wrap_class(type(model))
        return generation, model_hooks.wrap_attribute(model)

    begin_generate = adapter.guard_hook(before_generate)
    end_generate = adapter.guard_hook(GenerateCall.end)
    read_new_tokens = adapter.guard_hook(GenerateCall.on_new_tokens)

    def finish(generation: GenerateCall, wrapper: Optional[Callable], outcome: str) -> None:
        _current_generation.generation = None
        end_generate(generation, outcome)
        if wrapper is not None:  # also when nothing is recorded any more
            try:
                model_hooks.unwrap_attribute(wrapper)
            except Exception as error:  # noqa: BLE001 - must not reach the program
                adapter.disable_adapter(error)

    def wrap_engine_functions() -> None:
        adapter.require_attributes(
            mixin_class, "generate", "_update_model_kwargs_for_generation", _PREPARE_INPUTS_METHOD
        )
        original_generate, original_update = mixin_class.generate, mixin_class._update_model_kwargs_for_generation

        @functools.wraps(original_generate)
        def captured_generate(self, inputs=None, *args, **kwargs):
            is_outermost_call = getattr(_current_generation, "generation", None) is None
            call_and_wrapper = begin_generate(self, inputs, kwargs) if is_outermost_call else None
            if call_and_wrapper is None:
                return original_generate(self, inputs, *args, **kwargs)
            _current_generation.generation = call_and_wrapper[0]
            try:
                result = original_generate(self, inputs, *args, **kwargs)
            except BaseException:
                finish(*call_and_wrapper, OUTCOME_ABORTED)
                raise
            finish(*call_and_wrapper, OUTCOME_FINISHED)
            return result

        @functools.wraps(original_update)
        def captured_update(self, *args, **kwargs):
            generation = getattr(_current_generation, "generation", None)
            if generation is not None and generation.model is self:
                read_new_tokens(generation, args, kwargs)
            return original_update(self, *args, **kwargs)

        mixin_class.generate, mixin_class._update_model_kwargs_for_generation = captured_generate, captured_update

    adapter.install(wrap_engine_functions)
