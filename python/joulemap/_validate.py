# SPDX-License-Identifier: Apache-2.0
"""jm.validate: is what a report says of layers true? Each block of a model is run twice in a pass; what the pass costs more
is what the block costs, whatever any model of power says. Beside it stands what the recording of the plain pass says."""

from __future__ import annotations

import contextlib
import sys
import time
from typing import Any, Callable, Iterator, Optional, Sequence, Union

from . import _hot
from ._torch_probe import first_line
from ._torch_replay import Undisturbed
from ._validate_blocks import Doubling, look_at, named_blocks, reason_against, unwrapped
from ._validate_rounds import Rounds, Variant, WindowMeter, plain_variant

LEAST_ROUNDS = 2
# Passes run before and after what is attributed, so that its edges are like the rest.
LEAD_SHARE = 0.25


class Pass:
    """One pass of the model: `call` gives the loss where it trains, else anything. Gradients are dropped."""

    def __init__(self, torch: Any, model: Any, call: Callable[[], Any], train: bool) -> None:
        self._torch, self._model, self._call, self.train = torch, model, call, train
        self._parameters: list = []
        self.place: Optional[int] = None  # of a recording, while what runs is no part of the program

    def begin(self) -> None:
        self._parameters = list(self._model.parameters())

    def __call__(self) -> None:
        if not self.train:
            with self._torch.no_grad():
                self._call()
            return
        with self._torch.enable_grad():
            self._backward(self._call())
        for parameter in self._parameters:
            parameter.grad = None

    def _backward(self, loss: Any) -> None:
        if self.place is None:
            loss.backward()
            return
        from . import _capture_interface as interface

        interface.backward_begin(self.place)
        try:
            loss.backward()
        finally:
            interface.backward_end()


class Validation(contextlib.AbstractContextManager):
    """A model of which blocks may be run twice, within a `with`: afterwards it is as it was before."""

    def __init__(self, torch: Any, model: Any, run: Pass, blocks: Union[None, Sequence[str], dict]) -> None:
        self._torch, self._model, self._run = torch, model, run
        self._all_blocks = named_blocks(unwrapped(model), blocks)
        self._blocks: list = []
        self._seen: dict = {}
        self._undo = contextlib.ExitStack()
        self._devices = {tensor.device for tensor in model.parameters()}
        self.groups = {block.name: [path for path, _ in block.modules] for block in self._all_blocks}
        self.refused: dict = {}

    def __enter__(self) -> Validation:
        with contextlib.ExitStack() as undo:
            undo.enter_context(Undisturbed(self._torch, [self._model]))
            for parameter in self._model.parameters():
                undo.callback(setattr, parameter, "grad", parameter.grad)
                parameter.grad = None
            self._run.begin()
            self._seen = look_at([module for block in self._all_blocks for _, module in block.modules], self._run)
            self._undo = undo.pop_all()
        for block in self._all_blocks:
            reasons = [reason_against(self._seen[id(module)]) for _, module in block.modules]
            reason = next(filter(None, reasons), None)
            if reason is None:
                self._blocks.append(block)
            else:
                self.refused[block.name] = reason
        return self

    def __exit__(self, *details: object) -> None:
        self.wait()
        self._undo.close()

    def wait(self) -> None:
        for device in self._devices:
            if device.type == "cuda":
                self._torch.cuda.synchronize(device)

    def plain(self, seconds: float) -> dict:
        """Plain passes for so long: when they were, and how many."""
        passes, begin_ns = 0, time.monotonic_ns()
        while passes == 0 or time.monotonic_ns() - begin_ns < seconds * 1e9:
            self._run()
            self.wait()
            passes += 1
        return {"begin_ns": begin_ns, "end_ns": time.monotonic_ns(), "passes": passes}

    def measure(
        self, meter: Any, seconds: float, rounds: int, seed: int, progress: Callable[[str], None]
    ) -> list:
        """Loops of the plain pass and of the pass with each block twice. A block that fails is refused; the rest goes on."""
        with _capture_resting(self._run):
            played = Rounds(self._run, self.wait, meter, seconds)
            played.time_pass(plain_variant())
            played.warm_up()
            variants = [variant for block in self._blocks for variant in self._tried(played, block)]
            if not variants:
                raise ValueError(f"no block can be run twice: {self.refused}")
            progress(f"{len(variants)} loops of {seconds:g} s and plain ones between, {rounds} times")
            return played.play(variants, rounds, seed, progress)

    def _tried(self, played: Rounds, block: Any) -> list:
        doubling = Doubling(self._torch, block, self._seen, self._run.train)
        variants = [Variant(block.name, False, doubling.installed)]
        if doubling.needs_control:
            variants.append(Variant(block.name, True, doubling.control().installed))
        try:
            for variant in variants:
                played.time_pass(variant)
        except Exception as error:  # noqa: BLE001 - of the model's
            self.refused[block.name] = first_line(error)
            return []
        return variants


@contextlib.contextmanager
def _capture_resting(run: Pass) -> Iterator[None]:
    """What runs within it is no part of the program: told as probing is, where something is recorded."""
    session = None
    if _hot.is_recording():
        from . import _torch_capture

        session = _torch_capture.session
    if session is None:
        yield
        return
    with session.resting() as place:
        run.place = place
        try:
            yield
        finally:
            run.place = None
