# SPDX-License-Identifier: Apache-2.0
"""Entry points `vllm.general_plugins` and `sglang.srt.plugins` of the wheel: these engines call them in each of their
processes. They install the adapter where Joulemap's sitecustomize did not run, for example because the process was
started with another PYTHONPATH. Outside of a recording they do nothing."""

from __future__ import annotations

import sys
from importlib import import_module

from . import _hot


def _install_adapter(engine_module: str, adapter_module: str) -> None:
    try:
        if _hot.is_recording():
            module = import_module(engine_module)  # where sitecustomize did run, this import installs the adapter
            import_module("joulemap." + adapter_module).install(module)
    except Exception as error:  # noqa: BLE001 - must not reach the engine
        from . import _capture_interface as capture

        message = f"{engine_module}: {type(error).__name__}: {error}"
        capture.diagnose("engine_not_captured", message, "report steps with jm.engine_step")


def install_vllm_adapter() -> None:
    if "vllm.v1.engine.core" in sys.modules:  # not in workers, which do not schedule
        _install_adapter("vllm.v1.core.sched.scheduler", "_vllm_capture")


def install_sglang_adapter() -> None:
    if "sglang.srt.managers.scheduler" in sys.modules:
        _install_adapter("sglang.srt.managers.scheduler", "_sglang_capture")
