# SPDX-License-Identifier: Apache-2.0
"""One run of the collector: measures rows one after another and stores each as soon as its power samples are
available."""

from __future__ import annotations

import contextlib
import gc
import math
import sys
import time
from typing import Any, NamedTuple, Optional

from . import rows
from .counter import CounterReader, mean_power_w
from .measure import NotCapturableError, RunResult
from .power import POWER_LAG_NS, estimate_steady_power
from .windows import undisturbed_energy_j

IDLE_TIME_S = 0.6
WARM_UP_S = 2.0
ROWS_PER_GARBAGE_COLLECTION = 200
RECOVERY_PAUSE_S = 0.1
# Minimum steps of a network with long steps: power varies within a step.
MIN_NETWORK_STEPS = 4


class PendingRow(NamedTuple):
    identity: dict
    run_result: RunResult
    counter_w: Optional[float]
    since_s: float  # time since the slice began
    prepared_s: float  # time to prepare the row before it ran


class CollectorRun:
    """One slice: writes rows to the folder as soon as the driver has published the power samples of their interval."""

    def __init__(
        self,
        torch: Any,
        runner: Any,
        gpu: Any,
        row_store: rows.RowStore,
        active_s: float,
    ) -> None:
        self.torch, self.runner, self.gpu, self.rows, self.active_s = torch, runner, gpu, row_store, active_s
        self.slice_name = time.strftime("%Y%m%dT%H%M%S", time.gmtime())
        self.idle_w: Optional[float] = None
        self._pending_rows: list[PendingRow] = []
        self._begin_s = time.monotonic()
        self._deadline_s = math.inf
        self._last_progress_s = -math.inf  # when the progress was last shown
        self.measured_count = 0

    def warm_up(self) -> None:
        """Raises clocks and loads libraries, then measures the idle power of the waiting GPU for a moment."""
        matrix = self.runner.allocate_calls(lambda: self.torch.randn(1024, 1024, device=self.runner.device))
        self.runner.run_calls([lambda: matrix @ matrix], min(WARM_UP_S, 10 * self.active_s), False)
        begin_ns = time.monotonic_ns()
        time.sleep(min(IDLE_TIME_S, 5 * self.active_s))
        self.gpu.read_samples()
        # Excludes the beginning, during which power still falls.
        idle_estimate = estimate_steady_power(
            self.gpu.samples, begin_ns + (time.monotonic_ns() - begin_ns) // 3, time.monotonic_ns()
        )
        self.idle_w = idle_estimate.watts if idle_estimate else None

    def begin_measuring(self, duration_s: float) -> float:
        """Begins the measuring time, and returns when it ends. Start-up and warm-up are not part of it: on a busy machine
        they may take longer than a short measurement."""
        self._deadline_s = time.monotonic() + duration_s
        return self._deadline_s

    def _show_progress(self, key: str) -> None:
        """Shows a progress line if stderr is a terminal, at most once a second."""
        now_s = time.monotonic()
        if not sys.stderr.isatty() or now_s - self._last_progress_s < 1:
            return
        self._last_progress_s = now_s
        remaining_text = (
            f", at most {(self._deadline_s - now_s) / 60:.0f} min left" if self._deadline_s < math.inf else ""
        )
        print(
            f"\r\x1b[Kjoulemap collect: {self.measured_count} rows{remaining_text}; {key}"[:100],
            end="",
            file=sys.stderr,
            flush=True,
        )

    def measure_row(
        self, identity: dict, make_calls: Any, active_s: float, in_graph: bool, counted: bool = False
    ) -> None:
        """Measures one row. If `counted`, also tracks the energy counter, for long runs with varying power."""
        self._wait_for_clock_recovery()
        key, capture_group = identity["key"], rows.capture_group_key(identity)
        self.rows.begin_row(key)
        begin_s = time.monotonic()
        counter_reader = CounterReader(self.gpu.energy_j) if counted else contextlib.nullcontext()
        in_graph = in_graph and capture_group not in self.rows.uncapturable_groups
        try:
            with counter_reader:
                calls = self.runner.allocate_calls(make_calls)
                run_result = (
                    self.runner.run_network(calls[0], active_s, MIN_NETWORK_STEPS)
                    if counted
                    else self.runner.run_calls(calls, active_s, in_graph)
                )
        except NotCapturableError as error:
            self.write_remaining_rows()
            self.rows.add_uncapturable_group(capture_group, first_error_line(error))
            raise SystemExit(
                f"joulemap collect: {capture_group} cannot be captured in a CUDA graph; "
                "start again to run it without one"
            ) from error
        except (RuntimeError, ValueError, TypeError, NotImplementedError, AttributeError, ImportError) as error:
            self._record_failure(key, error)
            return
        finally:
            self.rows.end_row()
        run_s = (run_result.end_ns - run_result.begin_ns) * 1e-9
        counter_w = mean_power_w(counter_reader.readings, run_result.begin_ns, run_result.end_ns) if counted else None
        self._pending_rows.append(
            PendingRow(identity, run_result, counter_w, begin_s - self._begin_s, time.monotonic() - begin_s - run_s)
        )
        self.measured_count += 1
        self._show_progress(key)
        if self.measured_count % ROWS_PER_GARBAGE_COLLECTION == 0:
            gc.collect()
        self.runner.release_memory()
        self.write_sampled_rows()

    def _wait_for_clock_recovery(self) -> None:
        """Waits after a power- or temperature-limited row: clocks stay low for a moment and would affect the next
        row."""
        if self._pending_rows and self._pending_rows[-1].run_result.state.limited:
            time.sleep(RECOVERY_PAUSE_S)

    def _record_failure(self, key: str, error: BaseException) -> None:
        message = first_error_line(error)
        self.rows.add_failure(key, f"{type(error).__name__}: {message[:200]}")
        if "CUDA error" in message or "CUBLAS_STATUS_EXECUTION" in message:
            self.write_remaining_rows()
            raise SystemExit(f"joulemap collect: {key}: {message}")  # the CUDA context is unusable
        if self.runner.device == "cuda":
            self.torch.cuda.empty_cache()

    def write_sampled_rows(self) -> None:
        last_sample_ns = self.gpu.last_sample_ns()
        while self._pending_rows and self._pending_rows[0].run_result.end_ns + POWER_LAG_NS <= last_sample_ns:
            self._write_row(self._pending_rows.pop(0))
        self.gpu.drop_samples_before(
            self._pending_rows[0].run_result.begin_ns if self._pending_rows else last_sample_ns
        )

    def _write_row(self, pending_row: PendingRow) -> None:
        run_result = pending_row.run_result
        power_estimate = estimate_steady_power(self.gpu.samples, run_result.begin_ns, run_result.end_ns)
        if run_result.launch_mode == "graph" and run_result.time_s < rows.MIN_CALL_S:
            self.rows.add_failure(pending_row.identity["key"], "it launches nothing")
            return
        if power_estimate is None:  # a sample was lost: measured again in a later run
            print(
                f"joulemap collect: too few power samples of {pending_row.identity['key']}", file=sys.stderr, flush=True
            )
            return
        watts = pending_row.counter_w or power_estimate.watts
        energy_j, run_s = watts * run_result.time_s, (run_result.end_ns - run_result.begin_ns) * 1e-9
        if run_result.quiet_windows is not None and self.idle_w is not None:
            energy_j = undisturbed_energy_j(watts, run_s, run_result.calls, run_result.time_s, self.idle_w)
        self.rows.add_row(
            {
                "way": run_result.launch_mode,
                **pending_row.identity,
                "calls": run_result.calls,
                "time_s": run_result.time_s,
                "eager_s": run_result.eager_s,
                "issue_s": run_result.issue_s,
                "launch_s": run_result.launch_s,
                "quiet_windows": run_result.quiet_windows,
                "energy_j": energy_j,
                "power_w": energy_j / run_result.time_s,
                "history_w": power_estimate.watts,
                "power_error_w": power_estimate.error_w,
                "samples": power_estimate.samples,
                "length_s": run_s,
                **run_result.state._asdict(),
                "idle_w": self.idle_w,
                "slice": self.slice_name,
                "since_s": round(pending_row.since_s, 3),
                "prepared_s": round(pending_row.prepared_s, 4),
            }
        )

    def write_remaining_rows(self) -> None:
        if self._last_progress_s > -math.inf:
            print("\r\x1b[K", end="", file=sys.stderr, flush=True)  # clears the progress
        for _ in range(15):  # the driver publishes samples with an irregular delay
            if not self._pending_rows:
                return
            time.sleep(0.1)
            self.gpu.read_samples()
            self.write_sampled_rows()


def first_error_line(error: BaseException) -> str:
    return (str(error).strip() or repr(error)).splitlines()[0]
