# SPDX-License-Identifier: Apache-2.0
"""joulemap collect: measures what is not measured yet, for as long as it may."""

from __future__ import annotations

import argparse
import gc
import os
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any, NamedTuple, Optional, Sequence

from . import design, networks, operations, rows
from .measure import CpuRunner, CudaRunner, NotCapturable, Run
from .power import LAG_NS, Gpu, Mean, SimulatedGpu, watts_between
from .tensors import precision

# Of every so many rows one is measured a second time: what equal rows differ by is what no prediction can beat.
REPEAT_EVERY = 20
IDLE_S = 0.6
WARM_S = 2.0
COLLECT_GARBAGE_EVERY = 200
# A kernel takes longer; a call that takes less is a view.
NOTHING_S = 3e-7
# Without a GPU: what a core does in no time.
SMALL_BYTES, SMALL_FLOPS = 1e6, 1e7


class Pending(NamedTuple):
    told: dict
    run: Run
    since_s: float  # that the slice began
    prepared_s: float  # that making it took, before it ran


class Session:
    """One slice: rows go to the folder as soon as the driver has told the power of their time."""

    def __init__(self, torch: Any, runner: Any, gpu: Any, kept: rows.Rows, active_s: float) -> None:
        self.torch, self.runner, self.gpu, self.rows, self.active_s = torch, runner, gpu, kept, active_s
        self.slice = time.strftime("%Y%m%dT%H%M%S", time.gmtime())
        self.idle_w: Optional[float] = None
        self._pending: list[Pending] = []
        self._began = time.monotonic()
        self.measured = 0

    def warm(self) -> None:
        """Clocks up, libraries loaded; then idle for a moment, which is what a GPU draws that waits."""
        a = self.runner.prepared(lambda: self.torch.randn(1024, 1024, device=self.runner.device))
        self.runner.run([lambda: a @ a], min(WARM_S, 10 * self.active_s), False)
        begin_ns = time.monotonic_ns()
        time.sleep(min(IDLE_S, 5 * self.active_s))
        self.gpu.collect()
        # Without its beginning, in which power still falls.
        idle = watts_between(self.gpu.samples, begin_ns + (time.monotonic_ns() - begin_ns) // 3, time.monotonic_ns())
        self.idle_w = idle.watts if idle else None

    def measure(self, told: dict, make_calls: Any, active_s: float, in_graph: bool) -> None:
        key, group = told["key"], group_of(told)
        self.rows.begin(key)
        begin = time.monotonic()
        try:
            run = self.runner.run(
                self.runner.prepared(make_calls), active_s, in_graph and group not in self.rows.not_in_graph
            )
        except NotCapturable as error:
            self.finish()
            self.rows.add_not_in_graph(group, first_line(error))
            raise SystemExit(
                f"joulemap collect: {group} cannot be captured; begin again, it will run without a graph"
            ) from error
        except (RuntimeError, ValueError, TypeError, NotImplementedError, AttributeError, ImportError) as error:
            self._failed(key, error)
            return
        finally:
            self.rows.end()
        ran_s = (run.end_ns - run.begin_ns) * 1e-9
        self._pending.append(Pending(told, run, begin - self._began, time.monotonic() - begin - ran_s))
        self.measured += 1
        if self.measured % COLLECT_GARBAGE_EVERY == 0:
            gc.collect()
        self.runner.tidy()
        self.settle()

    def _failed(self, key: str, error: BaseException) -> None:
        first = first_line(error)
        self.rows.add_failure(key, f"{type(error).__name__}: {first[:200]}")
        if "CUDA error" in first or "CUBLAS_STATUS_EXECUTION" in first:
            self.finish()
            raise SystemExit(f"joulemap collect: {key}: {first}")  # nothing runs in this process any more
        if self.runner.device == "cuda":
            self.torch.cuda.empty_cache()

    def settle(self) -> None:
        until_ns = self.gpu.told_until_ns()
        while self._pending and self._pending[0].run.end_ns + LAG_NS <= until_ns:
            self._write(self._pending.pop(0))
        self.gpu.forget_before(self._pending[0].run.begin_ns if self._pending else until_ns)

    def _write(self, pending: Pending) -> None:
        run = pending.run
        power = watts_between(self.gpu.samples, run.begin_ns, run.end_ns)
        if run.way == "graph" and run.time_s < NOTHING_S:
            self.rows.add_failure(pending.told["key"], "it launches nothing")
            return
        if power is None:  # a sample got lost: another time
            print(f"joulemap collect: too few samples of {pending.told['key']}", file=sys.stderr, flush=True)
            return
        self.rows.add(
            {
                **pending.told,
                "way": run.way,
                "calls": run.calls,
                "time_s": run.time_s,
                "eager_s": run.eager_s,
                "energy_j": power.watts * run.time_s,
                "power_w": power.watts,
                "power_error_w": power.error_w,
                "samples": power.samples,
                "length_s": (run.end_ns - run.begin_ns) * 1e-9,
                **run.state._asdict(),
                "idle_w": self.idle_w,
                "slice": self.slice,
                "since_s": round(pending.since_s, 3),
                "prepared_s": round(pending.prepared_s, 4),
            }
        )

    def finish(self) -> None:
        for _ in range(15):  # the driver tells of samples when it likes to
            if not self._pending:
                return
            time.sleep(0.1)
            self.gpu.collect()
            self.settle()


def first_line(error: BaseException) -> str:
    return (str(error).strip() or repr(error)).splitlines()[0]


def group_of(told: dict) -> str:
    """Rows that run the same code: its kind, form and pass."""
    form = dict(pair.split("=") for pair in told["parameters"].split(";")).get("form", "")
    return f"{told['kind']} {form} {told['pass']}"


def tell_row(row: design.Planned) -> dict:
    cost = row.cost
    return {
        "key": row.key,
        "kind": row.kind,
        "parameters": design.parameters_text(row.parameters),
        "dtype": row.dtype,
        "pass": row.which,
        "cold": row.cold,
        "source": row.source,
        "flops": cost.flops,
        "bytes": cost.bytes,
    }


def collect_operations(session: Session, planned: Sequence[design.Planned], until_s: float) -> None:
    by_key = {row.key: row for row in planned}
    again = design.repeats([key for key in session.rows.times if key in by_key] or list(by_key)[:50], session.slice)
    for number, row in enumerate(row for row in planned if not session.rows.is_settled(row.key)):
        if time.monotonic() > until_s:
            return
        if number % REPEAT_EVERY == 0:
            measure_operation(session, by_key[next(again)])
        # A repeat may have been of this very row.
        if not session.rows.is_settled(row.key):
            measure_operation(session, row)


def measure_operation(session: Session, row: design.Planned) -> None:
    torch, device = session.torch, session.runner.device
    with precision(torch, row.dtype):
        in_graph = design.KINDS[row.kind].in_graph
        make = lambda: operations.calls_of(torch, device, row)  # noqa: E731
        session.measure(tell_row(row), make, session.active_s, in_graph)


def collect_networks(
    session: Session, planned: Sequence[Sequence[networks.Setting]], until_s: float, active_s: float
) -> None:
    for settings in planned:
        wanted = [setting for setting in settings if not session.rows.is_settled(setting.key)]
        if not wanted or time.monotonic() > until_s:
            continue
        try:
            loaded = networks.Loaded(session.torch, session.runner.device, wanted[0].network)
        except (RuntimeError, ValueError, TypeError, AttributeError, ImportError, KeyError) as error:
            # No failure of the rows: another version of a package may have it.
            print(f"joulemap collect: {wanted[0].network.name}: {first_line(error)}", file=sys.stderr, flush=True)
            continue
        with loaded:
            for setting in wanted:
                if time.monotonic() < until_s:
                    measure_network(session, loaded, setting, active_s)


def measure_network(session: Session, loaded: networks.Loaded, setting: networks.Setting, active_s: float) -> None:
    told = {
        "key": setting.key,
        "kind": "network",
        "parameters": design.parameters_text(setting.parameters),
        "dtype": setting.dtype,
        "pass": setting.which,
        "source": setting.network.family,
    }
    with networks.within(session.torch, setting):
        session.measure(told, lambda: [loaded.call_of(setting)], active_s, False)


def print_plan(options: argparse.Namespace) -> None:
    planned = design.plan(options.kinds, options.scale)
    counts, real = (
        Counter(row.kind for row in planned),
        Counter(row.kind for row in planned if row.source != "designed"),
    )
    print(f"{'kind':<14} {'rows':>6} {'of real layers':>15}")
    for kind, count in counts.items():
        print(f"{kind:<14} {count:>6} {real[kind]:>15}")
    print(f"{'all':<14} {len(planned):>6} {sum(real.values()):>15}")
    for name in ("dtype", "which"):
        counted = Counter(getattr(row, name) for row in planned)
        print(", ".join(f"{value} {count}" for value, count in sorted(counted.items())))
    if not options.kinds or "network" in options.kinds:
        settings = networks.plan_networks(options.settings, options.held_out)
        names = {setting.network for some in settings for setting in some}
        print(
            f"networks: {len(names)} of {len({one.family for one in names})} families, {sum(map(len, settings))} settings"
        )


def parser() -> argparse.ArgumentParser:
    made = argparse.ArgumentParser(prog="joulemap collect", description=__doc__)
    made.add_argument("--out", type=Path, help="folder of the rows; what lies there already is not measured again")
    made.add_argument("--seconds", type=float, default=240, help="to measure for (240)")
    made.add_argument("--kinds", nargs="*", default=[], metavar="KIND", help="only these; `network` for whole networks")
    made.add_argument("--active", type=float, default=0.14, help="seconds a row runs (0.14)")
    made.add_argument("--network-active", type=float, default=0.6, help="seconds a whole network runs (0.6)")
    made.add_argument("--settings", type=int, default=8, help="of each network: batches, sizes, types, passes (8)")
    made.add_argument("--scale", type=float, default=1.0, help="of the number of rows (1)")
    made.add_argument(
        "--held-out", action="store_true", help="the families that predictions are judged by, and no others"
    )
    made.add_argument("--simulated", action="store_true", help="on the CPU, with made-up power: to try the collector")
    made.add_argument("--plan", action="store_true", help="print how many rows of what there are, measure nothing")
    made.add_argument("--table", type=Path, metavar="FILE", help="write all rows of the folder as a table (.csv.gz)")
    return made


def opened(options: argparse.Namespace) -> tuple[Any, Any, Any]:
    import torch

    torch.manual_seed(design.SEED)
    if options.simulated:
        return torch, CpuRunner(torch), SimulatedGpu()
    if not torch.cuda.is_available():
        raise SystemExit("joulemap collect: no CUDA device (--simulated tries the collector without one)")
    gpu = Gpu(f"GPU-{torch.cuda.get_device_properties(0).uuid}")
    return torch, CudaRunner(torch, gpu.state), gpu


def collect(options: argparse.Namespace) -> int:
    began_s = time.monotonic()
    until_s = began_s + options.seconds
    torch, runner, gpu = opened(options)
    session = Session(torch, runner, gpu, rows.Rows(options.out), options.active)
    gc.collect()
    gc.freeze()
    gc.disable()
    session.warm()
    gpu.mean = Mean()
    begin = (time.monotonic(), gpu.energy_j())
    if [kind for kind in options.kinds if kind != "network"] or not options.kinds:
        planned = design.plan(options.kinds, options.scale)
        if options.simulated:
            planned = [row for row in planned if row.cost.bytes < SMALL_BYTES and row.cost.flops < SMALL_FLOPS]
        collect_operations(session, planned, until_s)
    if "network" in options.kinds:
        by_network = networks.plan_networks(options.settings, options.held_out)
        collect_networks(session, by_network, until_s, options.network_active)
    session.finish()
    energy_j = gpu.energy_j()
    session.rows.add_slice(
        {
            "slice": session.slice,
            "seconds": time.monotonic() - began_s,
            "measured": session.measured,
            "idle_w": session.idle_w,
            "counter_w": None if energy_j is None else (energy_j - begin[1]) / (time.monotonic() - begin[0]),
            "history_w": gpu.mean.value(),
            "power_limit_w": gpu.power_limit_w(),
            "torch": torch.__version__,
            "cuda": torch.version.cuda,
            "cudnn": torch.backends.cudnn.version() if runner.device == "cuda" else None,
            "python": sys.version.split()[0],
            **gpu.versions(),
        }
    )
    print(f"{session.measured} rows in {time.monotonic() - began_s:.0f} s; {len(session.rows.times)} distinct in all")
    return 0


def main(arguments: Optional[Sequence[str]] = None) -> int:
    made = parser()
    options = made.parse_args(arguments)
    unknown = [kind for kind in options.kinds if kind != "network" and kind not in design.KINDS]
    if unknown:
        made.error(f"no kind {', '.join(unknown)}: there are {', '.join(design.KINDS)}, network")
    if options.plan:
        print_plan(options)
        return 0
    if options.out is None:
        made.error("--out FOLDER is needed")
    if options.table:
        print(f"{rows.write_table(options.out, options.table)} rows in {options.table}")
        return 0
    os.environ.setdefault("HF_HUB_OFFLINE", "1")
    return collect(options)
