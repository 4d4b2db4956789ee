# SPDX-License-Identifier: Apache-2.0
"""jm.validate: checks the attributed energy of layers. Each block of a model is run twice in a pass; the extra energy
of the pass is the energy of the block, independent of any power model. The result is compared with the recording of
the plain pass."""

from __future__ import annotations

import contextlib
import gc
import os
import sys
import time
from typing import Any, Callable, Iterator, Optional, Sequence, Union

from . import _hot, _marks
from . import _validate_statistics as numbers
from ._torch_probe import first_error_line
from ._torch_replay import ModuleStatePreserver, collect_tensors
from ._validate_blocks import DoubledBlockPass, observe_modules, select_blocks, reason_against_doubling, unwrap_model
from ._validate_report import Validated, compare_with_recording
from ._validate_rounds import LoopRunner, PassVariant, WindowMeter, make_plain_variant
from ._validate_twin import drop_gradients, sparse_parameters

# Time of extra passes before and after the attributed interval, as a share of it: the load at its edges is the same as
# within it.
LEAD_TIME_SHARE = 0.1
SYNC_PERIOD_S = 0.1


class ModelPass:
    """One pass of the model. `call_model` returns the loss when training; otherwise its result is ignored. Gradients
    are not dropped after a pass, so they add up: dropping them takes time of the host that belongs to no layer."""

    def __init__(self, torch: Any, model: Any, call_model: Callable[[], Any], is_training: bool) -> None:
        self._torch, self._call_model, self.train = torch, call_model, is_training
        self._sparse_parameters = sparse_parameters(model)
        self.scope: Optional[int] = None  # scope of mode `probe` while the capture is paused
        self.extra_backward_roots: list = []  # (tensor, gradient) pairs: the backward pass begins with them, too

    def __call__(self) -> None:
        if not self.train:
            with self._torch.no_grad():
                self._call_model()
            return
        self.extra_backward_roots.clear()  # left over if the previous pass failed
        with self._torch.enable_grad():
            self._run_backward(self._call_model())
        if self.scope is None:
            _marks.step()  # there is no optimizer step, which would mark the end of the training step
        drop_gradients(self._sparse_parameters)

    def _run_backward(self, loss: Any) -> None:
        if self.scope is None:
            self._run_autograd_engine(loss)
            return
        from . import _capture_interface as interface

        interface.backward_begin(self.scope)
        try:
            self._run_autograd_engine(loss)
        finally:
            interface.backward_end()

    def _run_autograd_engine(self, loss: Any) -> None:
        if not self.extra_backward_roots:
            loss.backward()
            return
        tensors, gradients = zip(*self.extra_backward_roots)
        self.extra_backward_roots.clear()
        self._torch.autograd.backward([loss, *tensors], [None, *gradients])


class BlockDoublingSession(contextlib.AbstractContextManager):
    """Runs blocks of a model twice inside a `with` block; the model is unchanged afterwards."""

    def __init__(self, torch: Any, model: Any, model_pass: ModelPass, blocks: Union[None, Sequence[str], dict]) -> None:
        self._torch, self._model, self._model_pass = torch, model, model_pass
        self._selected_blocks = select_blocks(unwrap_model(model), blocks)
        self._accepted_blocks: list = []
        self._observations: dict = {}
        self._exit_stack = contextlib.ExitStack()
        self._devices = {tensor.device for tensor in model.parameters()}
        # By block: names of its modules in reports. They begin with the class if another model has the same paths.
        model_class = type(unwrap_model(model)).__name__
        self.groups = {
            block.name: [name for path, _ in block.modules for name in (path, f"{model_class}.{path}")]
            for block in self._selected_blocks
        }
        self.refused: dict = {}

    def __enter__(self) -> BlockDoublingSession:
        with contextlib.ExitStack() as undo_stack:
            undo_stack.enter_context(ModuleStatePreserver(self._torch, [self._model]))
            for parameter in self._model.parameters():
                undo_stack.callback(setattr, parameter, "grad", parameter.grad)
                parameter.grad = None
            self._observations = observe_modules(
                [module for block in self._selected_blocks for _, module in block.modules], self._model_pass
            )
            self._exit_stack = undo_stack.pop_all()
        for block in self._selected_blocks:
            refusal_reasons = [reason_against_doubling(self._observations[id(module)]) for _, module in block.modules]
            refusal_reason = next(filter(None, refusal_reasons), None)
            if refusal_reason is None:
                self._accepted_blocks.append(block)
            else:
                self.refused[block.name] = refusal_reason
        return self

    def __exit__(self, *exception_details: object) -> None:
        self.wait()
        self._exit_stack.close()

    def wait(self) -> None:
        for device in self._devices:
            if device.type == "cuda":
                self._torch.cuda.synchronize(device)

    def run_plain_passes(self, duration_s: float) -> dict:
        """Runs plain passes for `duration_s`; returns their interval and number."""
        pass_count, passes_per_sync, begin_ns = 0, 1, time.monotonic_ns()
        while pass_count == 0 or time.monotonic_ns() - begin_ns < duration_s * 1e9:
            for _ in range(passes_per_sync):
                self._model_pass()
            self.wait()
            pass_count += passes_per_sync
            # Synchronizing after every pass would lower the utilization of the GPU.
            passes_per_sync = max(1, int(SYNC_PERIOD_S * pass_count * 1e9 / (time.monotonic_ns() - begin_ns + 1)))
        return {"begin_ns": begin_ns, "end_ns": time.monotonic_ns(), "passes": pass_count}

    def measure_blocks(
        self, meter: Any, seconds: float, rounds: int, seed: int, progress: Callable[[str], None]
    ) -> tuple:
        """Runs loops of the plain pass and of the pass with each block twice. A block that fails is refused; the others
        continue. Returns the loops, and the host's times of single passes if they matter."""
        with _record_in_probe_mode(self._model_pass):
            rounds_runner = LoopRunner(self._model_pass, self.wait, meter, seconds)
            rounds_runner.time_pass(make_plain_variant())
            rounds_runner.warm_up()
            variants = [
                variant
                for block in self._accepted_blocks
                for variant in self._make_timed_variants(rounds_runner, block)
            ]
            if not variants:
                raise ValueError(f"no block can be executed twice: {self.refused}")
            progress(f"{len(variants)} loops of {seconds:g} s and plain ones between, {rounds} times")
            loops = rounds_runner.run_rounds(variants, rounds, seed, progress)
            return loops, rounds_runner.time_passes_on_host(variants, rounds, seed)

    def _make_timed_variants(self, rounds_runner: LoopRunner, block: Any) -> list:
        doubled_pass = DoubledBlockPass(
            self._torch,
            block,
            self._observations,
            self._model_pass.extra_backward_roots if self._model_pass.train else None,
        )
        variants = [PassVariant(block.name, False, doubled_pass.install_pass)]
        if doubled_pass.needs_control_pass:
            variants.append(PassVariant(block.name, True, doubled_pass.make_control_pass().install_pass))
        try:
            for variant in variants:
                rounds_runner.time_pass(variant)
        except Exception as error:  # noqa: BLE001 - raised by the model
            self.refused[block.name] = first_error_line(error)
            return []
        return variants


@contextlib.contextmanager
def _disable_garbage_collection() -> Iterator[None]:
    """Disables garbage collection inside: its pauses of milliseconds would fall on arbitrary passes."""
    was_enabled = gc.isenabled()
    gc.collect()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


@contextlib.contextmanager
def _record_in_probe_mode(model_pass: ModelPass) -> Iterator[None]:
    """Separates what runs inside from the program's own work: a recording contains it in mode `probe`."""
    session = None
    if _hot.is_recording():
        from . import _torch_capture

        session = _torch_capture.capture_session
    if session is None:
        yield
        return
    with session.record_in_probe_mode() as scope:
        model_pass.scope = scope
        try:
            yield
        finally:
            model_pass.scope = None


def validate(
    model: Any,
    inputs: Any,
    *,
    loss: Optional[Callable[[Any], Any]] = None,
    train: bool = False,
    blocks: Union[None, Sequence[str], dict] = None,
    seconds: float = 2.0,
    rounds: int = 5,
    recorded_s: float = 10.0,
    probe: bool = False,
    seed: int = 1,
    quiet: bool = False,
) -> Validated:
    """Compares the energy that `joulemap report` attributes to the module groups of a model, here called blocks, with
    measurements that run each block twice.

    The program must run under `joulemap record`. validate() prints a table and returns it as data. The model, its
    gradients and buffers, and random states are unchanged afterwards. It refuses compiled models and programs of several
    processes.

    - `inputs`: a tensor, a tuple of arguments or a dictionary of keyword arguments
    - `train`: if True, a pass includes the backward pass from `loss(output)` if given, else from `output.loss`, else from
      the sum of the output
    - `blocks`: paths of modules, or {name: [paths]} for several that are run twice together; by default up to 40
      children of the model, or of its largest modules
    - `seconds`, `rounds`: duration of a loop, and number of loops for each block; half as many for the plain pass
    - `recorded_s`: duration of the recording of the plain pass
    - `probe`: also compare the report after probing
    - `seed`: seed of the random order of loops; `quiet`: print nothing
    """
    import torch

    _check_model(torch, model)
    stdout, stderr = sys.stdout, sys.stderr  # BlockDoublingSession redirects output
    progress = (lambda text: None) if quiet else (lambda text: print(f"validate: {text}", file=stderr, flush=True))
    model_pass = ModelPass(torch, model, _make_model_call(model, inputs, loss, train), train)
    device, domain = _find_device_and_domain(model)
    # The meter opens first: the update interval of a slow counter is known after a few seconds.
    with (
        _disable_garbage_collection(),
        WindowMeter(domain) as meter,
        BlockDoublingSession(torch, model, model_pass, blocks) as doubling_session,
    ):
        intervals = _record_plain_passes(doubling_session, model, recorded_s, probe)
        loops, host_times = doubling_session.measure_blocks(meter, seconds, rounds, seed, progress)
    title = f"{type(unwrap_model(model)).__name__}, {'training' if train else 'inference'}"
    validated = compare_with_recording(
        title,
        device,
        numbers.compute_block_energies(loops, host_times),
        intervals,
        doubling_session.groups,
        doubling_session.refused,
        meter.is_measured,
    )
    if not quiet:
        print(validated, file=stdout)
    return validated


def _record_plain_passes(doubling_session: BlockDoublingSession, model: Any, duration_s: float, probe: bool) -> dict:
    """Runs plain passes for the report and then, if requested, probing; returns their intervals."""
    from ._attach import attach

    attachment = attach(model, probe=probe)
    doubling_session.run_plain_passes(LEAD_TIME_SHARE * duration_s)
    intervals = {"plain": doubling_session.run_plain_passes(duration_s)}
    doubling_session.run_plain_passes(LEAD_TIME_SHARE * duration_s)
    attachment.detach()
    if probe:
        intervals["probed"] = {**intervals["plain"], "end_ns": time.monotonic_ns()}
    return intervals


def _check_model(torch: Any, model: Any) -> None:
    if not isinstance(model, torch.nn.Module):
        raise TypeError(f"jm.validate needs a PyTorch module, not a {type(model).__name__}")
    class_name = type(model).__name__
    if class_name in ("OptimizedModule", "ScriptModule", "RecursiveScriptModule"):
        raise TypeError(f"jm.validate needs the modules of a model, which {class_name} hides: pass the original model")
    distributed = torch.distributed
    if distributed.is_available() and distributed.is_initialized() and distributed.get_world_size() > 1:
        raise ValueError("jm.validate does not support torch.distributed with several processes")
    from . import _torch_capture
    from ._library import JoulemapError

    if not _hot.is_recording() or _torch_capture.capture_session is None:
        raise JoulemapError("jm.validate needs a recording of layers: run joulemap record -- python PROGRAM")


def _make_model_call(
    model: Any, inputs: Any, loss: Optional[Callable[[Any], Any]], is_training: bool
) -> Callable[[], Any]:
    args = inputs if isinstance(inputs, (tuple, list)) else () if isinstance(inputs, dict) else (inputs,)
    kwargs = inputs if isinstance(inputs, dict) else {}
    if not is_training:
        return lambda: model(*args, **kwargs)
    return lambda: (loss or _default_loss)(model(*args, **kwargs))


def _default_loss(output: Any) -> Any:
    output_loss = getattr(output, "loss", None)
    if output_loss is not None:
        return output_loss
    return sum(tensor.sum() for tensor in collect_tensors(output) if tensor.requires_grad)


def _find_device_and_domain(model: Any) -> tuple:
    """The device as named in reports, and its energy domain; None for all CPUs and memory of the machine."""
    devices = {parameter.device for parameter in model.parameters()}
    if len(devices) > 1:
        raise ValueError(f"jm.validate supports models on one device, not on {len(devices)}")
    device = next(iter(devices), None)
    if device is None or device.type == "cpu":
        return "cpu", None
    if device.type != "cuda":
        raise ValueError(f"jm.validate supports CPUs and NVIDIA GPUs, not {device.type}")
    device_index = device.index or 0
    visible_devices = [
        visible_device.strip() for visible_device in os.environ.get("CUDA_VISIBLE_DEVICES", "").split(",")
    ]
    device_number = (
        visible_devices[device_index]
        if device_index < len(visible_devices) and visible_devices[device_index].isdigit()
        else str(device_index)
    )
    return f"gpu{device_number}", f"gpu{device_number}"
