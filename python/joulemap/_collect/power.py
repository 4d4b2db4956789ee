# SPDX-License-Identifier: Apache-2.0
"""Reads the GPU's power through NVML and estimates the power of an interval of steady load.

The driver keeps power samples every 20 ms for 2.4 s (nvmlDeviceGetSamples). On an H200 a sample shows the power 4 ms
earlier, low-pass filtered with a time constant of 13.4 ms (docs/reference/evidence.md, joulemap calibrate). After a
load begins, samples therefore approach its power P as P - (P - s) exp(-t/13.4 ms). Of the two unknowns, the power s
before the load is a nuisance parameter. Times are nanoseconds of CLOCK_MONOTONIC, powers are watts.
"""

from __future__ import annotations

import ctypes
import math
import os
import threading
import time
from typing import Callable, NamedTuple, Optional, Sequence

POWER_LAG_NS = 3_900_000
POWER_TIME_CONSTANT_NS = 13_400_000
# Upper bound of the uncertainty of the lag, ns: a sample this close to an edge may cover time beyond it.
STEADY_MARGIN_NS = 2_000_000
# Period of reading samples, in s: shorter than the 2.4 s for which the driver keeps them.
POWER_READ_PERIOD_S = 0.5
# Throttle reasons (clock event reasons), as numbered in nvml.h: power cap by software or hardware, temperature.
THROTTLE_REASON_BITS = 0x4 | 0x8 | 0x20 | 0x40 | 0x80


class PowerSample(NamedTuple):
    time_ns: int
    watts: float


class GpuState(NamedTuple):
    temperature_c: Optional[int]
    sm_clock_mhz: Optional[int]
    limited: Optional[bool]


class PowerEstimate(NamedTuple):
    watts: float
    error_w: float  # standard error, from the scatter of samples around the fitted rise
    samples: int


def estimate_steady_power(samples: Sequence[PowerSample], begin_ns: int, end_ns: int) -> Optional[PowerEstimate]:
    """Estimates the steady power in [begin, end) by least squares; None if fewer than three samples cover it."""
    first_ns, last_ns = begin_ns + POWER_LAG_NS + STEADY_MARGIN_NS, end_ns + POWER_LAG_NS - STEADY_MARGIN_NS
    covered_samples = [sample for sample in samples if first_ns <= sample.time_ns <= last_ns]
    if len(covered_samples) < 3:
        return None
    # watts = steady_power + power_offset * decay_factor, where the factor is known.
    decay_factors = [
        math.exp(-(sample.time_ns - POWER_LAG_NS - begin_ns) / POWER_TIME_CONSTANT_NS) for sample in covered_samples
    ]
    sample_count, sum_d = len(covered_samples), sum(decay_factors)
    sum_dd = sum(decay_factor * decay_factor for decay_factor in decay_factors)
    sum_w = sum(sample.watts for sample in covered_samples)
    sum_dw = sum(decay_factor * sample.watts for decay_factor, sample in zip(decay_factors, covered_samples))
    determinant = sample_count * sum_dd - sum_d * sum_d
    steady_power = (sum_dd * sum_w - sum_d * sum_dw) / determinant
    power_offset = (sample_count * sum_dw - sum_d * sum_w) / determinant
    squared_residuals = sum(
        (sample.watts - steady_power - power_offset * decay_factor) ** 2
        for sample, decay_factor in zip(covered_samples, decay_factors)
    )
    variance = squared_residuals / (sample_count - 2) * sum_dd / determinant
    return PowerEstimate(steady_power, math.sqrt(max(0.0, variance)), sample_count)


class RunningMean:
    """Mean power of a session over all samples, which are equally spaced. It is compared with the energy counter."""

    def __init__(self) -> None:
        self._value_sum, self._value_count = 0.0, 0

    def add_value(self, value: float) -> None:
        self._value_sum, self._value_count = self._value_sum + value, self._value_count + 1

    def mean(self) -> Optional[float]:
        return self._value_sum / self._value_count if self._value_count else None


class NvmlSample(ctypes.Structure):
    _fields_ = [("timestamp_us", ctypes.c_ulonglong), ("milliwatts", ctypes.c_ulonglong)]


class NvmlGpu:
    """One GPU through NVML. A thread reads samples before the driver discards them; read_samples() reads the newest
    ones at once."""

    MAX_SAMPLES = 1024

    def __init__(self, uuid: str) -> None:
        self.nvml = ctypes.CDLL(os.environ.get("JOULEMAP_NVML", "libnvidia-ml.so.1"))
        self._check_code(self.nvml.nvmlInit_v2(), "nvmlInit")
        self.device = ctypes.c_void_p()
        if self.nvml.nvmlDeviceGetHandleByUUID(uuid.encode(), ctypes.byref(self.device)) != 0:
            error_code = self.nvml.nvmlDeviceGetHandleByIndex_v2(0, ctypes.byref(self.device))
            self._check_code(error_code, f"neither GPU {uuid} nor GPU 0 exists")
        self.samples: list[PowerSample] = []
        self.mean_power = RunningMean()
        self._last_sample_us = time.time_ns() // 1000
        self._read_lock = threading.Lock()
        threading.Thread(target=self._read_loop, daemon=True).start()

    def _read_loop(self) -> None:
        while True:
            time.sleep(POWER_READ_PERIOD_S)
            self.read_samples()

    @staticmethod
    def _check_code(error_code: int, failed_call: str) -> None:
        if error_code != 0:
            raise OSError(f"NVML: {failed_call}: error {error_code}")

    def read_samples(self) -> None:
        with self._read_lock:
            now_ns, unix_ns = time.monotonic_ns(), time.time_ns()
            sample_buffer, sample_count, value_type = (
                (NvmlSample * self.MAX_SAMPLES)(),
                ctypes.c_uint(self.MAX_SAMPLES),
                ctypes.c_uint(),
            )
            since_us = ctypes.c_ulonglong(self._last_sample_us)
            output_arguments = ctypes.byref(value_type), ctypes.byref(sample_count), sample_buffer
            error_code = self.nvml.nvmlDeviceGetSamples(self.device, 0, since_us, *output_arguments)
            if error_code == 6:  # NVML_ERROR_NOT_FOUND: no new samples
                return
            self._check_code(error_code, "nvmlDeviceGetSamples (power)")
            for nvml_sample in sample_buffer[: sample_count.value]:
                # The driver sometimes returns the newest sample twice, a microsecond apart.
                if nvml_sample.timestamp_us >= self._last_sample_us + 1000:
                    self._last_sample_us = nvml_sample.timestamp_us
                    at_ns = nvml_sample.timestamp_us * 1000 - (unix_ns - now_ns)
                    self.samples.append(PowerSample(at_ns, (nvml_sample.milliwatts & 0xFFFFFFFF) * 1e-3))
                    self.mean_power.add_value(self.samples[-1].watts)

    def drop_samples_before(self, at_ns: int) -> None:
        with self._read_lock:
            self.samples = [sample for sample in self.samples if sample.time_ns >= at_ns]

    def last_sample_ns(self) -> int:
        return self.samples[-1].time_ns if self.samples else 0

    def energy_j(self) -> Optional[float]:
        energy_mj = ctypes.c_ulonglong()
        if self.nvml.nvmlDeviceGetTotalEnergyConsumption(self.device, ctypes.byref(energy_mj)) != 0:
            return None
        return energy_mj.value * 1e-3

    def power_limit_w(self) -> Optional[float]:
        limit_mw = self._read_nvml_number(self.nvml.nvmlDeviceGetEnforcedPowerLimit)
        return None if limit_mw is None else limit_mw * 1e-3

    def read_state(self) -> GpuState:
        reason_bits = ctypes.c_ulonglong()
        newer_name, older_name = "nvmlDeviceGetCurrentClocksEventReasons", "nvmlDeviceGetCurrentClocksThrottleReasons"
        read_reasons = getattr(self.nvml, newer_name if hasattr(self.nvml, newer_name) else older_name)
        is_known = read_reasons(self.device, ctypes.byref(reason_bits)) == 0
        return GpuState(
            self._read_nvml_number(self.nvml.nvmlDeviceGetTemperature, 0),
            self._read_nvml_number(self.nvml.nvmlDeviceGetClockInfo, 1),
            bool(reason_bits.value & THROTTLE_REASON_BITS) if is_known else None,
        )

    def _read_nvml_number(self, nvml_function, *selectors: int) -> Optional[int]:
        number = ctypes.c_uint()
        return number.value if nvml_function(self.device, *selectors, ctypes.byref(number)) == 0 else None

    def driver_versions(self) -> dict:
        text_buffer = ctypes.create_string_buffer(96)
        versions = {}
        if self.nvml.nvmlSystemGetDriverVersion(text_buffer, 96) == 0:
            versions["driver"] = text_buffer.value.decode()
        if self.nvml.nvmlDeviceGetName(self.device, text_buffer, 96) == 0:
            versions["gpu"] = text_buffer.value.decode()
        if self.nvml.nvmlDeviceGetUUID(self.device, text_buffer, 96) == 0:
            versions["uuid"] = text_buffer.value.decode()
        return versions


class SimulatedGpu:
    """Simulated GPU with constant power, for testing the collector without one."""

    SIMULATED_POWER_W = 100.0

    def __init__(self, clock_ns: Callable[[], int] = time.monotonic_ns) -> None:
        self.mean_power = RunningMean()
        self.samples: list[PowerSample] = []
        self._clock_ns, self._next_sample_ns = clock_ns, clock_ns()

    def read_samples(self) -> None:
        now_ns = self._clock_ns()
        while self._next_sample_ns <= now_ns:
            self.samples.append(PowerSample(self._next_sample_ns, self.SIMULATED_POWER_W))
            self._next_sample_ns += 20_000_000

    def drop_samples_before(self, at_ns: int) -> None:
        self.samples = [sample for sample in self.samples if sample.time_ns >= at_ns]

    def last_sample_ns(self) -> int:
        return self.samples[-1].time_ns if self.samples else 0

    def energy_j(self) -> Optional[float]:
        return None

    def power_limit_w(self) -> Optional[float]:
        return None

    def read_state(self) -> GpuState:
        return GpuState(None, None, None)

    def driver_versions(self) -> dict:
        return {"gpu": "simulated"}
