# SPDX-License-Identifier: Apache-2.0
"""Joulemap measures the energy of parts of a program while it runs.

    import joulemap as jm

    with jm.measure("epoch") as m:
        train()
    print(m)           # epoch: 12.3 J ± 0.2 J in 1.02 s (package-0 10.1 J, dram-0 2.2 J), measured
    print(m.joules)    # waits for the next sensor update; None if the energy is unknown, and m.reason is the cause

Importing the package starts no thread and opens no sensor: the first window, or start(), opens the sensors.
"""

from __future__ import annotations

from ._loading import load_attribute as _load_lazily
from ._marks import engine_event, engine_step, epoch, is_recording, log, region, step
from ._measure import Measurement, begin, end, measure

__all__ = [
    "Attachment", "Diagnostic", "Domain", "EarlyStop", "Energy", "Forecast", "JoulemapError", "Ledger", "Measurement",
    "Prediction", "Run", "Trial", "TuneResult", "attach", "begin", "doctor", "end", "engine_event", "engine_step", "epoch",
    "integers", "is_recording", "layer_value", "list_operations", "load", "log", "log_uniform", "measure", "module_names",
    "predict", "predict_total", "region", "save_module_names", "start", "step", "stop", "tune", "uniform", "validate",
    "version",
]  # fmt: skip

# Public name -> module from which it is loaded on first access: these modules need ctypes and dataclasses, which would
# dominate the import time.
_LAZY_MODULES = {
    "Attachment": "_attach", "Diagnostic": "_energy", "Domain": "_energy", "EarlyStop": "_early_stop", "Energy": "_energy",
    "Forecast": "_forecast", "JoulemapError": "_library", "Ledger": "_ledger", "Prediction": "_prediction",
    "Run": "_run", "Trial": "_tune", "TuneResult": "_tune_result", "attach": "_attach", "doctor": "_library",
    "integers": "_tune_space", "layer_value": "_layer_value", "list_operations": "_predict.operation_list", "load": "_run",
    "load_ipython_extension": "_jupyter", "log_uniform": "_tune_space", "module_names": "_module_names",
    "predict": "_prediction", "predict_total": "_forecast", "save_module_names": "_module_names", "start": "_library",
    "stop": "_library", "tune": "_tune", "uniform": "_tune_space", "validate": "_validate", "version": "_library",
}  # fmt: skip


def __getattr__(name: str) -> object:
    if name == "__version__":
        return __getattr__("version")()  # type: ignore[operator]
    if name not in _LAZY_MODULES:
        raise AttributeError(f"module 'joulemap' has no attribute {name!r}")
    value = globals()[name] = _load_lazily(_LAZY_MODULES[name], name)
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__, "__version__"})


TYPE_CHECKING = False
if TYPE_CHECKING:
    from ._attach import Attachment, attach
    from ._early_stop import EarlyStop
    from ._energy import Diagnostic, Domain, Energy
    from ._forecast import Forecast, predict_total
    from ._layer_value import layer_value
    from ._ledger import Ledger
    from ._library import JoulemapError, doctor, start, stop, version
    from ._module_names import module_names, save_module_names
    from ._predict.operation_list import list_operations
    from ._prediction import Prediction, predict
    from ._run import Run, load
    from ._tune import Trial, tune
    from ._tune_result import TuneResult
    from ._tune_space import integers, log_uniform, uniform
    from ._validate import validate
