# SPDX-License-Identifier: Apache-2.0
"""Captures `generate` of Hugging Face transformers in a recorded program: install() is called after
transformers.generation.utils has been imported. Each forward pass of the generating model is an engine step, and each
sequence of its batch a request "generate-<call>-<index>"; `joulemap report --by request` and `--by token` show them.

A step lasts from a forward pass to the next one: choosing tokens and the check for the end, which waits for the GPU,
belong to it. Beams of a sequence that are not its output count as rejected tokens, as do candidates that assisted
decoding rejects. A sequence that ends before the others of its batch counts until the batch ends: its padding is
computed. A `generate` inside another (of an assistant model) is part of the outer step.
"""

from __future__ import annotations

import functools
import itertools
import threading
from typing import Any, Optional

from . import _hot
from . import _capture_interface as capture

_calls = itertools.count()
_current = threading.local()  # the Generation of this thread


class Generation:
    """The steps of one call of generate()."""

    def __init__(self, model: Any) -> None:
        self._name = f"generate-{next(_calls)}"
        self._model_name = type(model).__name__
        self._step: Optional[Any] = None
        self._prompts: Optional[list[int]] = None  # real prompt lengths, by sequence
        self._beams = 1
        self._computed = 0  # tokens that this step computes for each row
        self._context = 0  # tokens in the cache after this step
        self._new_tokens = 0  # that this step generated for each sequence
        self._is_prefill = True
        # Called before each forward pass, and never compiled, as a hook of the module may be.
        self.model = model
        self._had_own = "prepare_inputs_for_generation" in vars(model)
        self._prepare = model.prepare_inputs_for_generation
        on_forward = capture.guarded(self._on_forward)

        @functools.wraps(self._prepare)
        def prepare(*args: Any, **kwargs: Any) -> Any:
            inputs = self._prepare(*args, **kwargs)
            on_forward(inputs)
            return inputs

        model.prepare_inputs_for_generation = prepare

    @capture.guarded
    def set_inputs(self, inputs: Any, attention_mask: Any, beams: int) -> None:
        """Reads the lengths of prompts, once per call, before the GPU is busy."""
        self._beams = max(beams, 1)
        if attention_mask is not None and attention_mask.dim() == 2:
            self._prompts = attention_mask.sum(1).tolist()
        elif inputs is not None and inputs.dim() >= 2:
            self._prompts = [inputs.shape[1]] * inputs.shape[0]

    def _on_forward(self, inputs: Any) -> None:
        names = ("decoder_input_ids", "input_ids", "inputs_embeds")
        tokens = next((inputs[name] for name in names if inputs.get(name) is not None), None)
        self.end_step(is_last=False)
        if tokens is None:
            return
        rows = tokens.shape[0]
        if self._prompts is None:
            self._prompts = [tokens.shape[1]] * max(rows // self._beams, 1)
        elif rows % len(self._prompts) == 0:
            self._beams = rows // len(self._prompts)
        self._computed, self._new_tokens = tokens.shape[1], 0
        self._step = _hot.EngineStep()
        self._step.__enter__()

    def on_new_tokens(self, count: Optional[int]) -> None:
        self._new_tokens = count or 0

    def end_step(self, is_last: bool) -> None:
        step, self._step = self._step, None
        if step is None:
            return
        self._context += self._computed if self._is_prefill else self._new_tokens
        accepted = self._new_tokens
        for number, prompt in enumerate(self._prompts or ()):
            in_vain = 0 if self._is_prefill else max(self._computed * self._beams - accepted, 0)
            step.add(
                f"{self._name}-{number}",
                prompt=min(prompt, self._computed) if self._is_prefill else 0,
                decoded=accepted,
                rejected=in_vain,
                context=self._context,
                finished=is_last,
                model=self._model_name,
            )
        if accepted > 0:
            self._is_prefill = False
        step.__exit__(None, None, None)

    def end(self) -> None:
        if self._had_own:
            self.model.prepare_inputs_for_generation = self._prepare
        else:
            del self.model.prepare_inputs_for_generation
        capture.guarded(self.end_step)(is_last=True)


def install(utils: Any) -> None:
    mixin = utils.GenerationMixin
    generate, update = mixin.generate, mixin._update_model_kwargs_for_generation

    @functools.wraps(generate)
    def captured_generate(self, inputs=None, *args, **kwargs):
        if not capture.is_recording() or getattr(_current, "generation", None) is not None:
            return generate(self, inputs, *args, **kwargs)
        generation = _current.generation = _begin(self, inputs, kwargs)
        try:
            return generate(self, inputs, *args, **kwargs)
        finally:
            _current.generation = None
            if generation is not None:
                generation.end()

    @functools.wraps(update)
    def captured_update(self, *args, **kwargs):
        generation = getattr(_current, "generation", None)
        if generation is not None and generation.model is self:
            generation.on_new_tokens(_count_of_new_tokens(args, kwargs))
        return update(self, *args, **kwargs)

    mixin.generate, mixin._update_model_kwargs_for_generation = captured_generate, captured_update


@capture.guarded
def _begin(model: Any, inputs: Any, kwargs: dict) -> Generation:
    generation = Generation(model)
    config = kwargs.get("generation_config") or getattr(model, "generation_config", None)
    beams = kwargs.get("num_beams") or getattr(config, "num_beams", 1) or 1
    copies = kwargs.get("num_return_sequences") or getattr(config, "num_return_sequences", 1) or 1
    given = next(
        (value for value in (inputs, kwargs.get("input_ids"), kwargs.get("inputs_embeds")) if value is not None), None
    )
    generation.set_inputs(given, kwargs.get("attention_mask"), max(beams, copies))
    return generation


@capture.guarded
def _count_of_new_tokens(args: tuple, kwargs: dict) -> int:
    """`num_new_tokens` of _update_model_kwargs_for_generation(outputs, model_kwargs, is_encoder_decoder, ...). A tensor
    in assisted decoding, which has waited for the GPU by then."""
    return int(kwargs.get("num_new_tokens", args[3] if len(args) > 3 else 1))
