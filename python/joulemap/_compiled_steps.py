# SPDX-License-Identifier: Apache-2.0
"""Steps of programs whose work is calls of compiled functions (JAX, tf.function, Session.run)."""

from __future__ import annotations

from typing import Dict, Optional, Tuple

from . import _capture_interface as capture


class StepDetector:
    """Detects steps: the annotations of the program if it has any, such as StepTraceAnnotation; otherwise each call of
    the function with the largest total time. Functions that train take precedence over those that do not. The call
    that compiles a function is no step."""

    def __init__(self) -> None:
        self._has_annotations = False
        self._time_by_function_s: Dict[str, float] = {}
        self._step_function: Optional[str] = None
        self._step_function_trains = False

    def record_step(self) -> None:
        self._has_annotations = True
        capture.step()

    def on_call(self, function: str) -> None:
        if not self._has_annotations and function == self._step_function:
            capture.on_event(capture.EVENT_FORWARD_INFER)

    def on_return(self, function: str, spent_s: float, was_compiled: bool, trains: bool = False) -> None:
        if self._has_annotations:
            return
        if was_compiled:
            if trains and self._step_function is None:
                self._step_function, self._step_function_trains = function, True
            return
        self._time_by_function_s[function] = self._time_by_function_s.get(function, 0.0) + spent_s
        if self._should_become_step_function(function, trains):
            self._step_function, self._step_function_trains = function, trains

    def _should_become_step_function(self, function: str, trains: bool) -> bool:
        step_function: Tuple[Optional[str], bool] = (self._step_function, self._step_function_trains)
        if step_function[0] is None or trains != step_function[1]:
            return step_function[0] is None or trains
        return function != step_function[0] and self._time_by_function_s[function] > 2 * self._time_by_function_s.get(
            step_function[0], 0.0
        )
