# SPDX-License-Identifier: Apache-2.0
"""What a program says about itself: regions, steps, epochs, metrics. They go into the recording when it runs under
`joulemap record`; else they do next to nothing."""

from __future__ import annotations

from . import _hot

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Optional

# Names that log() was given: what the program tells itself need not be inferred.
logged_names: set[str] = set()

region = _hot.Region
is_recording = _hot.is_recording


def step(number: Optional[int] = None) -> None:
    """A step begins: `number`, or one more than the last."""
    _hot.step(number)


def epoch(number: Optional[int] = None) -> None:
    """An epoch begins: `number`, or one more than the last."""
    _hot.epoch(number)


def log(**values: object) -> None:
    """Numbers the program reports: log(loss=0.3, accuracy=0.9). They belong to the present step.

    Takes what float() takes: numbers, NumPy scalars, tensors of one element in the CPU's memory. A tensor on a GPU is a
    TypeError: reading it would make the program wait for the GPU, and change what is being measured.
    """
    logged_names.update(values)
    for name, value in values.items():
        _hot.log_value(name, value if type(value) is float else _number(name, value))


def _number(name: str, value: object) -> float:
    device = getattr(value, "device", None)
    if device is not None and not callable(device):
        kind = getattr(device, "type", None) or getattr(device, "platform", None) or str(device)
        if kind != "cpu":
            raise TypeError(
                f"{name} lies on {device}: reading it would wait for that device. Log a number that is on the CPU anyway, "
                f"or say {name}.item() where the wait is meant"
            )
    return float(value)  # type: ignore[arg-type]
