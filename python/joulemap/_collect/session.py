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
from .measure import NotCapturable, Run
from .power import LAG_NS, steady_power
from .windows import undisturbed_energy_j

IDLE_TIME_S = 0.6
WARM_UP_S = 2.0
COLLECT_GARBAGE_EVERY = 200
RECOVERY_S = 0.1
# Minimum steps of a network with long steps: power varies within a step.
MIN_STEPS = 4


class Pending(NamedTuple):
    identity: dict
    run: Run
    counter_w: Optional[float]
    since_s: float  # time since the slice began
    prepared_s: float  # time to prepare the row before it ran


class Session:
    """One slice: writes rows to the folder as soon as the driver has published the power samples of their interval."""

    def __init__(
        self, torch: Any, runner: Any, gpu: Any, rows_store: rows.Rows, active_s: float, deadline_s: float = math.inf
    ) -> None:
        self.torch, self.runner, self.gpu, self.rows, self.active_s = torch, runner, gpu, rows_store, active_s
        self.slice = time.strftime("%Y%m%dT%H%M%S", time.gmtime())
        self.idle_w: Optional[float] = None
        self._pending: list[Pending] = []
        self._began = time.monotonic()
        self._deadline_s = deadline_s
        self._shown_s = -math.inf  # when the progress was last shown
        self.measured = 0

    def warm_up(self) -> None:
        """Raises clocks and loads libraries, then measures the idle power of the waiting GPU for a moment."""
        matrix = self.runner.prepare(lambda: self.torch.randn(1024, 1024, device=self.runner.device))
        self.runner.run([lambda: matrix @ matrix], min(WARM_UP_S, 10 * self.active_s), False)
        begin_ns = time.monotonic_ns()
        time.sleep(min(IDLE_TIME_S, 5 * self.active_s))
        self.gpu.collect()
        # Excludes the beginning, during which power still falls.
        idle = steady_power(self.gpu.samples, begin_ns + (time.monotonic_ns() - begin_ns) // 3, time.monotonic_ns())
        self.idle_w = idle.watts if idle else None

    def _show_progress(self, key: str) -> None:
        """Shows a progress line if stderr is a terminal, at most once a second."""
        now_s = time.monotonic()
        if not sys.stderr.isatty() or now_s - self._shown_s < 1:
            return
        self._shown_s = now_s
        left = f", at most {(self._deadline_s - now_s) / 60:.0f} min left" if self._deadline_s < math.inf else ""
        print(f"\r\x1b[Kjoulemap collect: {self.measured} rows{left}; {key}"[:100], end="", file=sys.stderr, flush=True)

    def measure(self, identity: dict, make_calls: Any, active_s: float, in_graph: bool, counted: bool = False) -> None:
        """Measures one row. If `counted`, also tracks the energy counter, for long runs with varying power."""
        self._recover()
        key, group = identity["key"], rows.group_of(identity)
        self.rows.begin(key)
        begin = time.monotonic()
        counter_reader = CounterReader(self.gpu.energy_j) if counted else contextlib.nullcontext()
        in_graph = in_graph and group not in self.rows.not_in_graph
        try:
            with counter_reader:
                calls = self.runner.prepare(make_calls)
                run = (
                    self.runner.run_network(calls[0], active_s, MIN_STEPS)
                    if counted
                    else self.runner.run(calls, active_s, in_graph)
                )
        except NotCapturable as error:
            self.finish()
            self.rows.add_not_in_graph(group, first_line(error))
            raise SystemExit(
                f"joulemap collect: {group} cannot be captured in a CUDA graph; start again to run it without one"
            ) from error
        except (RuntimeError, ValueError, TypeError, NotImplementedError, AttributeError, ImportError) as error:
            self._record_failure(key, error)
            return
        finally:
            self.rows.end()
        run_s = (run.end_ns - run.begin_ns) * 1e-9
        counter_w = mean_power_w(counter_reader.reads, run.begin_ns, run.end_ns) if counted else None
        self._pending.append(Pending(identity, run, counter_w, begin - self._began, time.monotonic() - begin - run_s))
        self.measured += 1
        self._show_progress(key)
        if self.measured % COLLECT_GARBAGE_EVERY == 0:
            gc.collect()
        self.runner.release_memory()
        self.write_settled()

    def _recover(self) -> None:
        """Waits after a power- or temperature-limited row: clocks stay low for a moment and would affect the next
        row."""
        if self._pending and self._pending[-1].run.state.limited:
            time.sleep(RECOVERY_S)

    def _record_failure(self, key: str, error: BaseException) -> None:
        message = first_line(error)
        self.rows.add_failure(key, f"{type(error).__name__}: {message[:200]}")
        if "CUDA error" in message or "CUBLAS_STATUS_EXECUTION" in message:
            self.finish()
            raise SystemExit(f"joulemap collect: {key}: {message}")  # the CUDA context is unusable
        if self.runner.device == "cuda":
            self.torch.cuda.empty_cache()

    def write_settled(self) -> None:
        until_ns = self.gpu.samples_until_ns()
        while self._pending and self._pending[0].run.end_ns + LAG_NS <= until_ns:
            self._write(self._pending.pop(0))
        self.gpu.drop_before(self._pending[0].run.begin_ns if self._pending else until_ns)

    def _write(self, pending: Pending) -> None:
        run = pending.run
        power = steady_power(self.gpu.samples, run.begin_ns, run.end_ns)
        if run.way == "graph" and run.time_s < rows.MIN_CALL_S:
            self.rows.add_failure(pending.identity["key"], "it launches nothing")
            return
        if power is None:  # a sample was lost: measured again in a later run
            print(f"joulemap collect: too few power samples of {pending.identity['key']}", file=sys.stderr, flush=True)
            return
        watts = pending.counter_w or power.watts
        energy_j, run_s = watts * run.time_s, (run.end_ns - run.begin_ns) * 1e-9
        if run.quiet_windows is not None and self.idle_w is not None:
            energy_j = undisturbed_energy_j(watts, run_s, run.calls, run.time_s, self.idle_w)
        self.rows.add(
            {
                "way": run.way,
                **pending.identity,
                "calls": run.calls,
                "time_s": run.time_s,
                "eager_s": run.eager_s,
                "issue_s": run.issue_s,
                "launch_s": run.launch_s,
                "quiet_windows": run.quiet_windows,
                "energy_j": energy_j,
                "power_w": energy_j / run.time_s,
                "history_w": power.watts,
                "power_error_w": power.error_w,
                "samples": power.samples,
                "length_s": run_s,
                **run.state._asdict(),
                "idle_w": self.idle_w,
                "slice": self.slice,
                "since_s": round(pending.since_s, 3),
                "prepared_s": round(pending.prepared_s, 4),
            }
        )

    def finish(self) -> None:
        if self._shown_s > -math.inf:
            print("\r\x1b[K", end="", file=sys.stderr, flush=True)  # clears the progress
        for _ in range(15):  # the driver publishes samples with an irregular delay
            if not self._pending:
                return
            time.sleep(0.1)
            self.gpu.collect()
            self.write_settled()


def first_line(error: BaseException) -> str:
    return (str(error).strip() or repr(error)).splitlines()[0]
