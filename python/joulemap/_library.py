# SPDX-License-Identifier: Apache-2.0
"""ctypes bindings of libjoulemap.so for everything outside the hot path. The structures mirror joulemap.h."""

from __future__ import annotations

import ctypes
import math
import os
from typing import Any, Optional

from . import _hot
from ._energy import Diagnostic, Domain, Energy

_library = ctypes.CDLL(os.path.join(os.path.dirname(os.path.abspath(__file__)), "libjoulemap.so"))

_STATUS_OK, _STATUS_NOT_FOUND = 0, 3
_PROVENANCE_BY_CODE = {0: None, 1: "measured", 2: "estimated"}


class JoulemapError(RuntimeError):
    """A request failed; the text contains the cause and a remedy."""


class _OptionsStructure(ctypes.Structure):
    _fields_ = [
        ("size", ctypes.c_size_t),
        ("sensors", ctypes.c_char_p),
        ("sysroot", ctypes.c_char_p),
        ("period_s", ctypes.c_double),
    ]


class _EnergyStructure(ctypes.Structure):
    _fields_ = [
        ("size", ctypes.c_size_t),
        ("elapsed_s", ctypes.c_double),
        ("joules", ctypes.c_double),
        ("uncertainty_j", ctypes.c_double),
        ("mean_w", ctypes.c_double),
        ("provenance", ctypes.c_int32),
        ("settled", ctypes.c_int32),
        ("measured_j", ctypes.c_double),
        ("estimated_j", ctypes.c_double),
        ("begin_ns", ctypes.c_int64),
        ("end_ns", ctypes.c_int64),
        ("domains", ctypes.c_size_t),
        ("diagnostics", ctypes.c_size_t),
        ("reason", ctypes.c_char * 128),
    ]


class _DomainStructure(ctypes.Structure):
    _fields_ = [
        ("size", ctypes.c_size_t),
        ("joules", ctypes.c_double),
        ("uncertainty_j", ctypes.c_double),
        ("mean_w", ctypes.c_double),
        ("provenance", ctypes.c_int32),
        ("counted", ctypes.c_int32),
        ("name", ctypes.c_char * 64),
        ("part_of", ctypes.c_char * 64),
        ("sensor", ctypes.c_char * 32),
        ("reason", ctypes.c_char * 64),
    ]


class _DiagnosticStructure(ctypes.Structure):
    _fields_ = [
        ("size", ctypes.c_size_t),
        ("count", ctypes.c_uint64),
        ("code", ctypes.c_char * 48),
        ("message", ctypes.c_char * 512),
        ("remedy", ctypes.c_char * 512),
    ]


_library.jm_version.restype = ctypes.c_char_p
_library.jm_last_error.restype = ctypes.c_char_p
_library.jm_window_wait.argtypes = [ctypes.c_uint64, ctypes.POINTER(_EnergyStructure)]
_library.jm_window_peek.argtypes = [ctypes.c_uint64, ctypes.POINTER(_EnergyStructure)]
_library.jm_window_domain.argtypes = [ctypes.c_size_t, ctypes.POINTER(_DomainStructure)]
_library.jm_window_diagnostic.argtypes = [ctypes.c_size_t, ctypes.POINTER(_DiagnosticStructure)]
_library.jm_start.argtypes = [ctypes.POINTER(_OptionsStructure)]
_library.jm_doctor_json.argtypes = [ctypes.POINTER(_OptionsStructure), ctypes.POINTER(ctypes.c_void_p)]
_library.jm_text_free.argtypes = [ctypes.c_void_p]
_library.jm_text_free.restype = None


def _decode_text(value: bytes) -> str:
    return value.decode("utf-8", "replace")


def _last_error() -> str:
    return _decode_text(_library.jm_last_error())


def _check_code(status_code: int) -> None:
    if status_code != _STATUS_OK:
        raise JoulemapError(_last_error())


def _none_if_nan(value: float) -> Optional[float]:
    return None if math.isnan(value) else value


def _make_structure(structure_type: Any) -> Any:
    structure = structure_type()
    structure.size = ctypes.sizeof(structure)
    return structure


def _read_domain(index: int) -> Domain:
    structure = _make_structure(_DomainStructure)
    _check_code(_library.jm_window_domain(index, structure))
    return Domain(
        name=_decode_text(structure.name),
        joules=_none_if_nan(structure.joules),
        uncertainty_j=_none_if_nan(structure.uncertainty_j),
        watts=_none_if_nan(structure.mean_w),
        provenance=_PROVENANCE_BY_CODE[structure.provenance],
        counted=bool(structure.counted),
        part_of=_decode_text(structure.part_of),
        sensor=_decode_text(structure.sensor),
        reason=_decode_text(structure.reason),
    )


def _read_diagnostic(index: int) -> Diagnostic:
    structure = _make_structure(_DiagnosticStructure)
    _check_code(_library.jm_window_diagnostic(index, structure))
    return Diagnostic(
        _decode_text(structure.code), structure.count, _decode_text(structure.message), _decode_text(structure.remedy)
    )


def read_energy(window: _hot.Window, wait: bool) -> Energy:
    """The energy of a window. A window that no longer exists, such as one of the parent after a fork, has no energy,
    but a reason."""
    structure = _make_structure(_EnergyStructure)
    status_code = (_library.jm_window_wait if wait else _library.jm_window_peek)(window.id, structure)
    if status_code == _STATUS_NOT_FOUND:
        reason = "the measurement stopped or the process forked after the window began"
        return Energy(None, None, None, None, None, reason, settled=True)
    _check_code(status_code)
    return Energy(
        joules=_none_if_nan(structure.joules),
        uncertainty_j=_none_if_nan(structure.uncertainty_j),
        seconds=structure.elapsed_s,
        watts=_none_if_nan(structure.mean_w),
        provenance=_PROVENANCE_BY_CODE[structure.provenance],
        reason=_decode_text(structure.reason),
        measured_j=_none_if_nan(structure.measured_j),
        estimated_j=_none_if_nan(structure.estimated_j),
        settled=bool(structure.settled),
        begin_ns=structure.begin_ns,
        end_ns=structure.end_ns,
        domains=[_read_domain(index) for index in range(structure.domains)],
        diagnostics=[_read_diagnostic(index) for index in range(structure.diagnostics)],
    )


def _make_options(sensors: Optional[str], sysroot: object, period_s: float = 0) -> _OptionsStructure:
    options = _make_structure(_OptionsStructure)
    options.sensors = None if sensors is None else sensors.encode()
    options.sysroot = None if sysroot is None else os.fsencode(sysroot)  # type: ignore[arg-type]
    options.period_s = period_s
    return options


def start(sensors: Optional[str] = None, sysroot: object = None, period_s: float = 0) -> None:
    """Opens the sensors now instead of at the first window.

    - `sensors`: comma-separated names, such as "powercap,estimate"; by default `JOULEMAP_SENSORS`, or all
    - `sysroot`: another root directory for the sensor files; by default `JOULEMAP_SYSROOT`, or "/"
    - `period_s`: time between two reads of a sensor, 0.0001 to 60 s; 0 means 5 ms, longer for slow sensors such as NVML's
    """
    _check_code(_library.jm_start(_make_options(sensors, sysroot, period_s)))


def stop() -> None:
    """Stops the sensors. Closed windows can still be read; the next window starts the sensors again."""
    _check_code(_library.jm_stop())


def doctor(sensors: Optional[str] = None, sysroot: object = None) -> dict:
    """Returns the output of `joulemap doctor --json`: usable and unusable sensors, causes and remedies."""
    import json

    json_text = ctypes.c_void_p()
    _check_code(_library.jm_doctor_json(_make_options(sensors, sysroot), ctypes.byref(json_text)))
    try:
        return json.loads(ctypes.string_at(json_text))  # type: ignore[arg-type]
    finally:
        _library.jm_text_free(json_text)


def version() -> str:
    """Version of the library."""
    return _decode_text(_library.jm_version())
