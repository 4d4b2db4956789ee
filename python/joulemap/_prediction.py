# SPDX-License-Identifier: Apache-2.0
"""jm.predict: the energy of a network on a GPU before it runs, by layer. A PyTorch module is traced on tensors without
data, a Keras model is exported as JSON, a file is passed on; `joulemap predict` computes the prediction."""

from __future__ import annotations

import json
import math
import os
import subprocess
import warnings
from dataclasses import dataclass, field
from typing import Any, Optional, Sequence, Union

from ._library import JoulemapError
from ._recorder import joulemap_program_path

PREDICT_TIMEOUT_S = 120


@dataclass(frozen=True)
class Layer:
    """One layer of a prediction."""

    name: str  # name of the layer in the model
    op: str  # its main operation
    energy_j: float  # energy in J
    low_j: float  # lower bound of the 90 % interval, in J
    high_j: float  # upper bound of the 90 % interval, in J; infinite if an operation of the layer is unknown
    time_s: float  # time on the GPU, in s


@dataclass(frozen=True, repr=False)
class Prediction:
    """The energy of a pass or of a training step on one GPU, without the rest of the machine.

    If some operations are unknown (`unknown_ops`), `energy_j` is a lower bound and `high_j` is infinite."""

    energy_j: float  # energy in J
    low_j: float  # lower bound of the 90 % interval, in J
    high_j: float  # upper bound of the 90 % interval, in J
    time_s: float  # time in s
    power_w: float  # mean power, in W
    device: str  # name of the GPU
    layers: list[Layer] = field(repr=False)  # a list of Layer, in the order of the network
    unknown_ops: list[dict] = field(repr=False)  # operations that Joulemap does not know
    notes: list[str] = field(repr=False)  # assumptions, such as the batch size
    document: dict = field(repr=False)  # complete output of `joulemap predict --json`

    @property
    def is_lower_bound(self) -> bool:
        """True if operations are unknown: the network uses more energy, by an unknown amount."""
        return bool(self.unknown_ops)

    def __str__(self) -> str:
        pass_name = "one training step" if self.document["pass"] == "training" else "one pass"
        if not self.is_lower_bound:
            energy_text = f"{self.energy_j:.3g} J ({self.low_j:.3g} .. {self.high_j:.3g})"
            return f"{pass_name} on {self.device}: {energy_text} in {self.time_s:.3g} s"
        unknown_names = _summarize_names(self.unknown_ops)
        return f"{pass_name} on {self.device}: at least {self.energy_j:.3g} J; unknown operations: {unknown_names}"

    def __repr__(self) -> str:
        return f"<Prediction {self}>"

    def to_pandas(self) -> Any:
        """The layers as a DataFrame; needs pandas."""
        import pandas

        return pandas.DataFrame([vars(layer) for layer in self.layers])


def predict(
    model: Any,
    inputs: Any = (),
    named: Optional[dict] = None,
    *,
    device: Optional[str] = None,
    profile: Union[str, os.PathLike, None] = None,
    training: bool = False,
    optimizer: Union[str, Any, None] = "adamw",
    loss: Any = None,
    precision: str = "default",
    autocast: Any = None,
    batch: Optional[int] = None,
    execution: str = "eager",
    host_factor: float = 1.0,
    idle_w: Optional[float] = None,
) -> Prediction:
    """Predicts the energy of a call of `model`, or of a training step, without running it.

        prediction = jm.predict(model, [images], training=True)
        print(prediction.energy_j, prediction.low_j, prediction.high_j)
        jm.predict("model.onnx", batch=32, device="a100")

    - `model`: a PyTorch module, a Keras model, or the path of an ONNX file or of a Keras model's JSON
    - `inputs`, `named`, `optimizer`, `loss`, `autocast`: for a PyTorch module, see `list_operations`; nothing is
      computed, and everything may be on the meta device
    - for a file or a Keras model, `inputs` and `named` set shapes of inputs, in order or by name: arrays or shapes, such
      as [(8, 3, 224, 224)]; `optimizer` is a name (None: adamw); `loss` and `autocast` do not apply
    - `device`: name of a GPU, by default h200; `profile`: a file that `joulemap model fit` wrote, instead
    - `training`: predict a training step, with backward pass and optimizer
    - `precision`: default, fp32, tf32; for a file also fp16, bf16, amp-bf16
    - `batch`: batch size, for files and Keras models
    - `execution`: eager, or compiled as by torch.compile
    - `host_factor`: slowdown of the host relative to the host of the measurements
    - `idle_w`: active-idle power of this GPU, in W; by default the mean of the measured GPUs
    """
    options = ["--execution", execution, "--host-factor", str(host_factor)]
    options += ["--idle-w", str(idle_w)] if idle_w is not None else []
    options += ["--device", device] if device else []
    options += ["--profile", os.fspath(profile)] if profile else []
    if hasattr(model, "named_modules") and not _is_keras_model(model):
        if batch is not None:
            raise ValueError("batch does not apply to a PyTorch module: pass inputs of that batch size")
        from ._predict.operation_list import list_operations

        step_options = {"optimizer": optimizer, "loss": loss} if training else {}
        operations = list_operations(
            model, inputs, named, training=training, precision=precision, autocast=autocast, **step_options
        )
        return _run_predict(["-", *options], json.dumps(operations))
    optimizer_name = optimizer if training and optimizer is not None else "adamw"
    _check_file_arguments(optimizer_name, loss, autocast)
    options += _input_options(inputs if inputs is not None else (), named)
    options += ["--precision", precision, "--pass", "training" if training else "inference"]
    options += ["--batch", str(batch)] if batch is not None else []
    options += ["--optimizer", optimizer_name] if training else []
    if hasattr(model, "to_json"):
        return _run_predict(["-", *options], model.to_json())
    if isinstance(model, (str, os.PathLike)):
        return _run_predict([os.fspath(model), *options], None)
    raise TypeError(f"model must be a PyTorch module, a Keras model or a file path, not a {type(model).__name__}")


def _is_keras_model(model: Any) -> bool:
    """On the PyTorch backend, a Keras model is also a PyTorch module."""
    packages = {base.__module__.partition(".")[0] for base in type(model).__mro__}
    return hasattr(model, "to_json") and bool(packages & {"keras", "tf_keras"})


def _check_file_arguments(optimizer: Any, loss: Any, autocast: Any) -> None:
    if not isinstance(optimizer, str):
        raise ValueError(
            f"for a file or a Keras model, optimizer is a name, such as sgd or adamw, not a {type(optimizer).__name__}"
        )
    if loss is not None:
        raise ValueError("loss applies to PyTorch modules only: a file or a Keras model trains with cross entropy")
    if autocast is not None:
        raise ValueError('autocast applies to PyTorch modules only: pass precision="amp-bf16"')


def _input_options(inputs: Any, named: Optional[dict]) -> list[str]:
    """The shapes of inputs as options of `joulemap predict`."""
    is_one_input = hasattr(inputs, "shape") or (len(inputs) > 0 and all(isinstance(size, int) for size in inputs))
    ordered_inputs = [] if isinstance(inputs, dict) else [inputs] if is_one_input else inputs
    named_inputs = {**(inputs if isinstance(inputs, dict) else {}), **(named or {})}
    shape_texts = [_shape_text(value) for value in ordered_inputs]
    shape_texts += [f"{name}={_shape_text(value)}" for name, value in named_inputs.items()]
    return [option for text in shape_texts for option in ("--input", text)]


def _shape_text(array_or_shape: Any) -> str:
    shape = getattr(array_or_shape, "shape", array_or_shape)
    if isinstance(shape, str) or not hasattr(shape, "__iter__"):
        raise ValueError(f"an input of a file or of a Keras model is an array or a shape, not {array_or_shape!r}")
    return "x".join(str(int(size)) for size in shape)


def _run_predict(predict_arguments: list, input_text: Optional[str]) -> Prediction:
    command = [joulemap_program_path(), "predict", *predict_arguments, "--json"]
    input_options: dict = {"stdin": subprocess.DEVNULL} if input_text is None else {"input": input_text}
    process_options = {"capture_output": True, "text": True, "timeout": PREDICT_TIMEOUT_S, **input_options}
    process = subprocess.run(command, **process_options)  # type: ignore[call-overload]
    if not process.stdout.strip():
        raise JoulemapError(
            process.stderr.strip().replace("joulemap: ", "") or f"joulemap predict: exit code {process.returncode}"
        )
    document = json.loads(process.stdout)
    if document["unknown_ops"]:
        warning_text = f"the energy is a lower bound: {len(document['unknown_ops'])} operations are unknown"
        warnings.warn(f"{warning_text} ({_summarize_names(document['unknown_ops'])})", stacklevel=3)
    elif process.returncode != 0:
        warnings.warn(process.stderr.strip().replace("joulemap: ", ""), stacklevel=3)
    layers = [
        Layer(
            layer["name"],
            layer["op"],
            layer["energy_j"],
            layer["low_j"],
            _infinite_if_none(layer["high_j"]),
            layer["time_s"],
        )
        for layer in document["layers"]
    ]
    totals = (
        document["energy_j"],
        document["low_j"],
        _infinite_if_none(document["high_j"]),
        document["time_s"],
        document["power_w"],
    )
    return Prediction(*totals, document["device"], layers, document["unknown_ops"], document["notes"], document)


def _infinite_if_none(high_j: Optional[float]) -> float:
    return math.inf if high_j is None else high_j


def _summarize_names(unknown_ops: Sequence[dict]) -> str:
    names = list(dict.fromkeys(entry["op"] for entry in unknown_ops))
    return ", ".join(names[:4]) + (f" and {len(names) - 4} more" if len(names) > 4 else "")
