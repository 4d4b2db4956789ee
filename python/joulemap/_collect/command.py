# SPDX-License-Identifier: Apache-2.0
"""joulemap collect: measures the rows that have no measurement yet, within the time limit."""

from __future__ import annotations

import argparse
import gc
import os
import random
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any, Optional, Sequence

from . import compiled, corners, design, layer_tables, layers, listed, networks, operations, rows, summary, tables
from .arguments import StrictParser, count, positive
from .measure import CpuRunner, CudaRunner
from .power import Gpu, RunningMean, SimulatedGpu
from .session import Session, first_line
from .tensors import precision

# One in this many operations, and one in this many groups of network settings, is measured again. The difference
# between repeats bounds the accuracy of any prediction.
REPEAT_EVERY = 20
REPEAT_NETWORK_EVERY = 8
# Kinds that measure whole networks.
NETWORK_KINDS = ("network", "layers", "compiled")
# Shapes that the parameter ranges of the kinds rarely cover (corners.py).
CORNERS = "corners"
# Limits of a row without a GPU, small enough for one CPU core.
SMALL_BYTES, SMALL_FLOPS = 1e6, 1e7


def row_identity(row: design.PlannedRow) -> dict:
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


def collect_operations(session: Session, planned: Sequence[design.PlannedRow], deadline_s: float) -> None:
    by_key = {row.key: row for row in planned}
    rng = random.Random(f"{design.SEED} {session.slice}")
    for number, row in enumerate(row for row in planned if not session.rows.is_settled(row.key)):
        if time.monotonic() > deadline_s:
            return
        if number % REPEAT_EVERY == REPEAT_EVERY - 1 and (measured := measured_keys(session, by_key)):
            measure_operation(session, by_key[rng.choice(measured)])
        measure_operation(session, row)


def measured_keys(session: Session, by_key: dict) -> list[str]:
    return [key for key in session.rows.times if key in by_key]


def measure_operation(session: Session, row: design.PlannedRow) -> None:
    torch, device = session.torch, session.runner.device
    with precision(torch, row.dtype):
        in_graph = design.KINDS[row.kind].in_graph
        make = lambda: operations.calls_of(torch, device, row)  # noqa: E731
        session.measure(row_identity(row), make, session.active_s, in_graph)


def collect_networks(
    session: Session, planned: Sequence[Sequence[networks.Setting]], deadline_s: float, active_s: float
) -> None:
    """Measures networks until the deadline: first groups with a setting that was never measured, then settings that
    were disturbed in every measurement."""
    by_key = {setting.key: setting for settings in planned for setting in settings}
    rng = random.Random(f"{design.SEED} {session.slice}")
    for number, settings in enumerate(
        sorted(planned, key=lambda group: all(setting.key in session.rows.times for setting in group))
    ):
        wanted = [setting for setting in settings if not session.rows.is_settled(setting.key)]
        if not wanted or time.monotonic() > deadline_s:
            continue
        collect_network(session, wanted, deadline_s, active_s)
        measured = measured_keys(session, by_key)
        if number % REPEAT_NETWORK_EVERY == REPEAT_NETWORK_EVERY - 1 and measured:
            collect_network(session, [by_key[rng.choice(measured)]], deadline_s, active_s)


def collect_network(session: Session, wanted: Sequence[networks.Setting], deadline_s: float, active_s: float) -> None:
    try:
        loaded = networks.LoadedNetwork(session.torch, session.runner.device, wanted[0].network)
    except networks.LOAD_ERRORS as error:
        # Not recorded as a failure of the rows: another version of the package may have this network.
        print(f"joulemap collect: {wanted[0].network.name}: {first_line(error)}", file=sys.stderr, flush=True)
        return
    with loaded:
        for setting in wanted:
            if time.monotonic() < deadline_s:
                measure_network(session, loaded, setting, active_s)


def measure_network(
    session: Session, loaded: networks.LoadedNetwork, setting: networks.Setting, active_s: float
) -> None:
    identity = {
        "key": setting.key,
        "kind": "network",
        "parameters": design.parameters_text(setting.parameters),
        "dtype": setting.dtype,
        "pass": setting.which,
        "source": setting.network.family,
    }
    with networks.applied_setting(session.torch, setting):
        session.measure(identity, lambda: [loaded.call_of(setting)], active_s, False, counted=True)


def collect_layers(session: Session, planned: Sequence[Sequence[networks.Setting]], deadline_s: float) -> None:
    """Measures the GPU time of each operation inside its network; records no energy per operation."""
    known = {line["layers_of"] for line in rows.lines_of(session.rows.folder) if "layers_of" in line}
    for settings in planned:
        wanted = [setting for setting in settings if setting.key not in known]
        if not wanted or time.monotonic() > deadline_s:
            continue
        try:
            with networks.LoadedNetwork(session.torch, session.runner.device, wanted[0].network) as loaded:
                for setting in wanted:
                    with networks.applied_setting(session.torch, setting):
                        profile_line = layers.profile(session.torch, loaded.call_of(setting))
                    session.rows.add_layers({"layers_of": setting.key, "slice": session.slice, **profile_line})
        except networks.LOAD_ERRORS as error:
            print(f"joulemap collect: {wanted[0].network.name}: {first_line(error)}", file=sys.stderr, flush=True)
        gc.collect()
        session.runner.release_memory()


def planned_operations(options: argparse.Namespace) -> list[design.PlannedRow]:
    if options.kinds == [CORNERS]:
        return corners.plan()
    if not options.listed:
        return design.plan(options.kinds, options.scale)
    if planned := listed.plan(options.listed):
        return [row for row in planned if not options.kinds or row.kind in options.kinds]
    raise SystemExit(f"joulemap collect: {options.listed} does not contain operations.csv.gz and settings.csv.gz")


def planned_networks(options: argparse.Namespace) -> list[list[networks.Setting]]:
    planned = networks.plan_networks(options.settings, options.held_out, options.package)
    if options.which is None:
        return planned
    return [[setting for setting in settings if setting.which == options.which] for settings in planned]


def print_plan(options: argparse.Namespace) -> None:
    planned = planned_operations(options)
    counts, from_networks = (
        Counter(row.kind for row in planned),
        Counter(row.kind for row in planned if row.source != "designed"),
    )
    print(f"{'kind':<14} {'rows':>6} {'of real layers':>15}")
    for kind, count in counts.items():
        print(f"{kind:<14} {count:>6} {from_networks[kind]:>15}")
    print(f"{'all':<14} {len(planned):>6} {sum(from_networks.values()):>15}")
    for name in ("dtype", "which"):
        counted = Counter(getattr(row, name) for row in planned)
        print(", ".join(f"{value} {count}" for value, count in sorted(counted.items())))
    if "network" in options.kinds or not (options.kinds or options.listed):
        settings = planned_networks(options)
        names = {setting.network for group in settings for setting in group}
        print(
            f"networks: {len(names)} of {len({one.family for one in names})} families, {sum(map(len, settings))} settings"
        )
    if "compiled" in options.kinds:
        settings = compiled.plan()
        names = {setting.network for group in settings for setting in group}
        print(f"compiled: {len(names)} networks, {sum(map(len, settings))} settings, each also run eagerly")


def parser() -> argparse.ArgumentParser:
    cli = StrictParser(prog="joulemap collect", description=__doc__)
    cli.add_argument("--out", type=Path, help="output folder; rows that exist there are not measured again")
    cli.add_argument("--seconds", type=positive, default=240, help="measuring time in s (240)")
    cli.add_argument(
        "--kinds", nargs="*", default=[], metavar="KIND",
        help="kinds to measure; `network`: networks, `layers`: their layers, `compiled`: some with torch.compile",
    )  # fmt: skip
    cli.add_argument(
        "--listed", type=Path, metavar="FOLDER", help="measure operations of the networks listed there (data/seed)"
    )
    cli.add_argument("--active", type=positive, default=0.14, help="measuring time of a row in s (0.14)")
    cli.add_argument("--network-active", type=positive, default=0.6, help="measuring time of a network in s (0.6)")
    cli.add_argument("--settings", type=count, default=8, help="settings per network: batch, size, type, pass (8)")
    cli.add_argument("--pass", dest="which", choices=networks.PASSES, help="pass of networks (both)")
    cli.add_argument("--package", choices=sorted(networks.MAKERS), help="package of networks (all)")
    cli.add_argument("--scale", type=positive, default=1.0, help="factor for the number of rows (1)")
    cli.add_argument(
        "--held-out", action="store_true", help="measure only the held-out families, which evaluate predictions"
    )
    cli.add_argument("--simulated", action="store_true", help="run on the CPU with simulated power, for tests")
    cli.add_argument("--plan", action="store_true", help="print the number of rows of each kind and exit")
    cli.add_argument("--summary", action="store_true", help="print a summary of the rows in --out, as Markdown")
    cli.add_argument(
        "--tables", type=Path, metavar="FOLDER", help="write the rows to this folder as compressed tables (.csv.gz)"
    )
    return cli


def opened(options: argparse.Namespace) -> tuple[Any, Any, Any]:
    import torch

    torch.manual_seed(design.SEED)
    if options.simulated:
        return torch, CpuRunner(torch), SimulatedGpu()
    if not torch.cuda.is_available():
        raise SystemExit("joulemap collect: no CUDA device; --simulated runs without one")
    gpu = Gpu(f"GPU-{torch.cuda.get_device_properties(0).uuid}")
    return torch, CudaRunner(torch, gpu.state), gpu


def collect(options: argparse.Namespace) -> int:
    began_s = time.monotonic()
    deadline_s = began_s + options.seconds
    torch, runner, gpu = opened(options)
    session = Session(torch, runner, gpu, rows.Rows(options.out), options.active, deadline_s)
    gc.collect()
    gc.freeze()
    gc.disable()
    session.warm_up()
    gpu.mean = RunningMean()
    begin = (time.monotonic(), gpu.energy_j())
    if [kind for kind in options.kinds if kind not in NETWORK_KINDS] or not options.kinds:
        planned = planned_operations(options)
        if options.simulated:
            planned = [row for row in planned if row.cost.bytes < SMALL_BYTES and row.cost.flops < SMALL_FLOPS]
        collect_operations(session, planned, deadline_s)
    if "network" in options.kinds:
        collect_networks(session, planned_networks(options), deadline_s, options.network_active)
    if "layers" in options.kinds:
        collect_layers(session, planned_networks(options), deadline_s)
    if "compiled" in options.kinds:
        compiled.collect(session, deadline_s, options.network_active)
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
    print(f"{session.measured} rows in {time.monotonic() - began_s:.0f} s; {len(session.rows.times)} distinct in total")
    return 0


def main(arguments: Optional[Sequence[str]] = None) -> int:
    cli = parser()
    options = cli.parse_args(arguments)
    others = (*NETWORK_KINDS, CORNERS)
    unknown = [kind for kind in options.kinds if kind not in others and kind not in design.KINDS]
    if unknown:
        cli.error(f"unknown kind {', '.join(unknown)}; choose from {', '.join(design.KINDS)}, {', '.join(others)}")
    if CORNERS in options.kinds and len(options.kinds) > 1:
        cli.error("corners cannot be combined with other kinds: use --kinds corners")
    if options.plan:
        print_plan(options)
        return 0
    if options.out is None:
        cli.error("--out FOLDER is required")
    if options.summary:
        print(summary.summarize(rows.measured_in(options.out)))
        return 0
    if options.tables:
        slices = [line for line in rows.lines_of(options.out) if "seconds" in line]
        measured = [design.with_cost(row) for row in rows.measured_in(options.out)]
        for name, count in tables.write(measured, slices, options.tables).items():
            print(f"{name}: {count} rows")
        if profiled := [line for line in rows.lines_of(options.out) if "operations" in line]:
            for name, count in layer_tables.write(profiled, options.out, options.tables).items():
                print(f"{name}: {count} rows")
        return 0
    os.environ.setdefault("HF_HUB_OFFLINE", "1")
    return collect(options)
