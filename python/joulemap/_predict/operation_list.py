# SPDX-License-Identifier: Apache-2.0
"""Converts a PyTorch module into a list of operations without running it: tensors have shapes and types but no data.

`joulemap predict` reads the list ("joulemap.operations/1"): plain numbers and strings, ready for JSON.
"""

from __future__ import annotations

import contextlib
from typing import Any, Callable, Iterator, Optional, Union

from .elements import dtype_name
from .fakes import FakeTensorFactory, replace_model_tensors, suspend_default_device
from .on_gpu import select_gpu_kernels
from .python_calls import PythonCallCounter
from .recorder import OperationTrace, make_dispatch_mode
from .shapes import OperationSpec, is_tensor

SCHEMA = "joulemap.operations/1"
PRECISIONS = ("default", "tf32", "fp32")
OPTIMIZER_FORMS = ("sgd", "momentum", "adam", "adamw", "rmsprop")
QUANTIZED_MODULES = ("torch.ao.nn.quantized", "torch.nn.quantized")
FORM_BY_OPTIMIZER_CLASS = {"SGD": "sgd", "Adam": "adam", "AdamW": "adamw", "RMSprop": "rmsprop"}


def list_operations(
    model: Any,
    inputs: Any = (),
    named: Optional[dict] = None,
    *,
    training: bool = False,
    optimizer: Union[str, Any, None] = None,
    loss: Optional[Callable[[Any], Any]] = None,
    precision: str = "default",
    autocast: Any = None,
) -> dict:
    """Returns the operations of a call of `model`, or of a training step, without running it. `joulemap predict` reads
    the list as JSON. The model and its inputs may be on any device, including the meta device; they stay unchanged.

    - `inputs`: a tensor, a sequence of arguments or a dictionary of keyword arguments
    - `named`: more keyword arguments
    - `optimizer`: a PyTorch optimizer, or its name: sgd, momentum, adam, adamw, rmsprop; None lists no optimizer step
    - `loss`: a function of the model's output; by default the cross entropy of its first tensor
    - `precision`: precision of fp32 matrix products and convolutions: default (TF32 in convolutions only, as PyTorch),
      tf32, fp32
    - `autocast`: a type, such as torch.bfloat16
    """
    import torch
    from torch._subclasses.fake_tensor import FakeTensorMode

    check_traceable(torch, model)
    check_precision(precision)
    if isinstance(optimizer, str):
        optimizer_form(optimizer)  # validates before anything is changed
    arguments, keyword_arguments = _split_arguments(inputs, named)
    recorder, mode = OperationTrace(torch, precision), FakeTensorMode(allow_non_fake_inputs=True)
    factory, call_counter = FakeTensorFactory(torch, mode), PythonCallCounter()
    was_training = model.training
    set_training_mode(model, training)
    try:
        # Inference mode hides the operations of which PyTorch's functions consist.
        with (
            explain_data_dependence(model),
            torch.inference_mode(False),
            suspend_default_device(torch),
            replace_model_tensors(torch, model, factory),
            mode,
        ):
            args, kwargs = factory.replace_tensors(arguments), factory.replace_tensors(keyword_arguments)
            run_to_fill_model_caches(torch, model, OperationTrace(torch, precision), args, kwargs, training, autocast)
            with track_modules(torch, model, recorder):
                if training:
                    record_training_step(torch, model, recorder, call_counter, args, kwargs, loss, autocast)
                    record_optimizer(model, recorder, optimizer)
                else:
                    record_inference(torch, model, recorder, call_counter, args, kwargs, autocast)
            weights = [parameter for parameter in model.parameters() if parameter.requires_grad]
            weight_counts = {
                "weight_tensors": len(weights),
                "weight_elements": sum(int(parameter.numel()) for parameter in weights),
            }
    finally:
        model.train(was_training)
    return {
        "schema": SCHEMA,
        "name": type(model).__name__,
        "format": "torch",
        "pass": "training" if training else "inference",
        "operations": recorder.operations,
        "unknown": recorder.unknown_operations,
        **weight_counts,
        **({} if call_counter.call_count is None else {"python_calls": call_counter.call_count}),
        "notes": recorder.notes,
    }


def check_precision(precision: str) -> None:
    if precision not in PRECISIONS:
        raise ValueError(
            f"the precision of a PyTorch module is {', '.join(PRECISIONS[:-1])} or {PRECISIONS[-1]}, not {precision}; "
            "for 16 bits, pass autocast=torch.bfloat16 or convert the module: model.to(torch.bfloat16)"
        )


def check_traceable(torch: Any, model: Any) -> None:
    """Refuses modules whose operations are not visible in Python or whose weights are not tensors."""
    if not isinstance(model, torch.nn.Module):
        raise TypeError(f"model must be a PyTorch module, not a {type(model).__name__}")
    if isinstance(model, torch.jit.ScriptModule):
        raise ValueError("a TorchScript module cannot be traced: pass the module that it was made of")
    if any(type(module).__module__.startswith(QUANTIZED_MODULES) for module in model.modules()):
        raise ValueError("a quantized module cannot be traced: pass the module before quantization")


def set_training_mode(model: Any, training: bool) -> None:
    try:
        model.train(training)
    except NotImplementedError as error:
        raise ValueError("an exported module cannot be traced: pass the module that was exported") from error


@contextlib.contextmanager
def explain_data_dependence(model: Any) -> Iterator[None]:
    from torch._subclasses.fake_tensor import DataDependentOutputException, DynamicOutputShapeException

    try:
        yield
    except (DataDependentOutputException, DynamicOutputShapeException) as error:
        raise ValueError(
            f"the operations of {type(model).__name__} depend on values of tensors ({error}), and a trace has no values: "
            "measure the model with joulemap record, or pass the part of it without this dependence"
        ) from error


def _split_arguments(inputs: Any, keyword_inputs: Optional[dict]) -> tuple:
    if isinstance(inputs, dict):
        return (), {**inputs, **(keyword_inputs or {})}
    is_tensor = hasattr(inputs, "data_ptr")
    return (inputs,) if is_tensor else tuple(inputs), dict(keyword_inputs or {})


def run_to_fill_model_caches(
    torch: Any, model: Any, discarded_trace: OperationTrace, args: tuple, kwargs: dict, training: bool, autocast: Any
) -> None:
    """Runs once to create state that a module caches for later calls (positions, masks): it is not part of
    each pass."""
    with (
        torch.set_grad_enabled(training),
        select_gpu_kernels(torch, discarded_trace, autocast),
        make_dispatch_mode(torch, discarded_trace),
    ):
        model(*args, **kwargs)


def record_inference(
    torch: Any,
    model: Any,
    recorder: OperationTrace,
    call_counter: PythonCallCounter,
    args: tuple,
    kwargs: dict,
    autocast: Any,
) -> None:
    with (
        torch.no_grad(),
        select_gpu_kernels(torch, recorder, autocast),
        make_dispatch_mode(torch, recorder),
        call_counter,
    ):
        model(*args, **kwargs)


def record_training_step(
    torch: Any,
    model: Any,
    recorder: OperationTrace,
    call_counter: PythonCallCounter,
    args: tuple,
    kwargs: dict,
    loss: Optional[Callable],
    autocast: Any,
) -> None:
    with torch.enable_grad():
        with select_gpu_kernels(torch, recorder, autocast), make_dispatch_mode(torch, recorder):
            with call_counter:
                output = model(*args, **kwargs)
            loss_value = (loss or make_cross_entropy(torch, recorder))(output)
        recorder.begin_backward()
        with select_gpu_kernels(torch, recorder, None), make_dispatch_mode(torch, recorder):
            loss_value.backward()


def find_logits(output: Any) -> Any:
    """Returns the logits from any output structure."""
    for name in ("logits", "last_hidden_state"):
        if hasattr(output, name):
            return getattr(output, name)
    if isinstance(output, dict):
        return next(iter(output.values()))
    return output[0] if isinstance(output, (tuple, list)) else output


def make_cross_entropy(torch: Any, recorder: OperationTrace) -> Callable[[Any], Any]:
    def compute(output: Any) -> Any:
        logits = find_logits(output)
        if not is_tensor(logits) or logits.dim() < 2:
            shape_text = f"the shape {list(logits.shape)}" if is_tensor(logits) else f"the type {type(logits).__name__}"
            raise ValueError(
                f"the default loss, cross entropy, needs scores of classes, but the output has {shape_text}: "
                "pass a function, such as loss=lambda output: output.mean()"
            )
        logits = logits.flatten(0, -2) if logits.dim() > 2 else logits
        with recorder.pause_recording():
            target = torch.empty(logits.shape[0], dtype=torch.int64, device=logits.device)
        return torch.nn.functional.cross_entropy(logits.float(), target)

    return compute


@contextlib.contextmanager
def track_modules(torch: Any, model: Any, recorder: OperationTrace) -> Iterator[None]:
    """Assigns operations to the innermost running module."""
    path_by_module = {id(module): name for name, module in model.named_modules()}
    for name, parameter in model.named_parameters():
        recorder.layer_of_parameter.setdefault(id(parameter), name.rpartition(".")[0])

    def enter(module: Any, _: Any) -> None:
        parent = recorder.module_path_stack[-1] if recorder.module_path_stack else ""
        recorder.module_path_stack.append(path_by_module.get(id(module), parent))

    def leave(module: Any, _: Any, __: Any) -> None:
        if recorder.module_path_stack:
            recorder.module_path_stack.pop()

    hooks = [
        torch.nn.modules.module.register_module_forward_pre_hook(enter),
        torch.nn.modules.module.register_module_forward_hook(leave, always_call=True),
    ]
    try:
        yield
    finally:
        for hook in hooks:
            hook.remove()


def record_optimizer(model: Any, recorder: OperationTrace, optimizer: Union[str, Any, None]) -> None:
    """Records one optimizer step over the weights that received a gradient."""
    if optimizer is None:
        return
    recorder.phase = "optimizer"
    source = optimizer if isinstance(optimizer, str) else f"torch.optim.{type(optimizer).__name__}"
    form, implementation = optimizer_form(optimizer)
    if form is None:
        reason = "an unmeasured optimizer"
        recorder.unknown_operations.append({"layer": "", "source": source, "reason": reason, "bounded": True})
    weights_by_dtype: dict[str, list] = {}
    for weight in (weight for weight in model.parameters() if weight.grad is not None):
        weights_by_dtype.setdefault(dtype_name(weight.dtype), []).append(weight)
    for dtype_weights in weights_by_dtype.values():
        element_total = sum(int(weight.numel()) for weight in dtype_weights)
        if form is None:
            operation_spec = OperationSpec(
                "unknown",
                "",
                {"batch": 1, "rows": 1, "width": element_total, "in": element_total, "out": element_total},
            )
        else:
            operation_spec = OperationSpec(
                "optimizer", form, {"tensors": len(dtype_weights), "elements": element_total, **implementation}
            )
        recorder.record_spec(operation_spec, source, dtype_weights[0], "", "optimizer")


def optimizer_form(optimizer: Union[str, Any]) -> tuple[Optional[str], dict[str, int]]:
    if isinstance(optimizer, str):
        if optimizer not in OPTIMIZER_FORMS:
            raise ValueError(f"unknown optimizer {optimizer}; choose from {', '.join(OPTIMIZER_FORMS)}")
        return optimizer, {"fused": 0, "foreach": 1}
    settings = optimizer.defaults
    form = FORM_BY_OPTIMIZER_CLASS.get(type(optimizer).__name__)
    if form == "sgd" and settings.get("momentum"):
        form = "momentum"
    is_fused = bool(settings.get("fused"))
    return form, {"fused": int(is_fused), "foreach": int(not is_fused and settings.get("foreach") is not False)}
