# SPDX-License-Identifier: Apache-2.0
"""Annotations by the program: regions, steps, epochs, metrics. They are recorded under `joulemap record`; otherwise
they cost next to nothing."""

from __future__ import annotations

from . import _hot

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Optional

# Names passed to log(): metrics that the program logs need not be inferred.
logged_metric_names: set[str] = set()

# Functions that receive "step" and "epoch" at each mark: those of jm.predict_total().
mark_listeners: list = []

region = _hot.Region
is_recording = _hot.is_recording
engine_step = _hot.EngineStep

_EVENT_CODES = {"finished": 1, "preempted": 2, "aborted": 4}


def engine_event(id: object, event: str) -> None:
    """Reports that a request of a serving engine was "finished", "preempted" or "aborted" outside of a step."""
    if event not in _EVENT_CODES:
        raise ValueError(f"event must be one of {', '.join(_EVENT_CODES)}, not {event!r}")
    _hot.engine_event(id, _EVENT_CODES[event])


def step(number: Optional[int] = None) -> None:
    """Marks the beginning of a step: `number`, or the last number plus one. The first is 0. Steps that were inferred
    before the first call do not count."""
    _hot.step(number)
    if mark_listeners:
        notify_mark_listeners("step")


def epoch(number: Optional[int] = None) -> None:
    """Marks the beginning of an epoch: `number`, or the last number plus one. The first is 0. Epochs that were inferred
    before the first call do not count."""
    _hot.epoch(number)
    if mark_listeners:
        notify_mark_listeners("epoch")


def notify_mark_listeners(mark: str) -> None:
    """Calls the listeners; a listener may remove itself."""
    for listener in tuple(mark_listeners):
        listener(mark)


def log(**values: object) -> None:
    """Logs metrics of the current step: log(loss=0.3, samples=32). Reports sum `samples` to give the energy per sample, and
    the page shows the energy per decrease of `loss`.

    Accepts what float() accepts: numbers, NumPy scalars, one-element tensors in CPU memory. A tensor on a GPU raises
    TypeError: reading it would synchronize with the GPU and change the measured program.
    """
    logged_metric_names.update(values)
    for name, value in values.items():
        _hot.log_value(name, value if type(value) is float else _to_metric_value(name, value))


def _to_metric_value(name: str, value: object) -> float:
    device = getattr(value, "device", None)
    if device is not None and not callable(device):
        device_kind = getattr(device, "type", None) or getattr(device, "platform", None) or str(device)
        if device_kind != "cpu":
            raise TypeError(
                f"{name} is on {device}: reading it synchronizes with that device. Log a value that is on the CPU, "
                f"or pass {name}.item() to synchronize"
            )
    if getattr(value, "requires_grad", False) is True:  # PyTorch warns when such a tensor becomes a number
        value = value.detach()  # type: ignore[attr-defined]
    return float(value)  # type: ignore[arg-type]
