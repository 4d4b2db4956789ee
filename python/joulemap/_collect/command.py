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
from .arguments import StrictArgumentParser, parse_count, parse_positive_number
from .measure import CpuRunner, CudaRunner
from .power import NvmlGpu, RunningMean, SimulatedGpu
from .session import CollectorRun, first_error_line
from .tensors import use_matmul_precision

# One in this many operations, and one in this many groups of network settings, is measured again. The difference
# between repeats bounds the accuracy of any prediction.
OPERATIONS_PER_REPEAT = 20
NETWORKS_PER_REPEAT = 8
# Kinds that measure whole networks.
NETWORK_KINDS = ("network", "layers", "compiled")
# Shapes that the parameter ranges of the kinds rarely cover (corners.py).
CORNER_ROWS_KIND = "corners"
# Limits of a row without a GPU, small enough for one CPU core.
MAX_CPU_ROW_BYTES, MAX_CPU_ROW_FLOPS = 1e6, 1e7


def row_identity(row: design.PlannedRow) -> dict:
    cost = row.cost
    return {
        "key": row.key,
        "kind": row.kind,
        "parameters": design.format_parameters(row.parameters),
        "dtype": row.dtype,
        "pass": row.pass_name,
        "cold": row.is_cold,
        "source": row.source,
        "flops": cost.flops,
        "bytes": cost.bytes,
    }


def collect_operations(session: CollectorRun, planned_rows: Sequence[design.PlannedRow], deadline_s: float) -> None:
    row_by_key = {row.key: row for row in planned_rows}
    rng = random.Random(f"{design.DESIGN_SEED} {session.slice_name}")
    for row_index, row in enumerate(row for row in planned_rows if not session.rows.is_settled(row.key)):
        if time.monotonic() > deadline_s:
            return
        if row_index % OPERATIONS_PER_REPEAT == OPERATIONS_PER_REPEAT - 1 and (
            repeatable_keys := measured_keys(session, row_by_key)
        ):
            measure_operation(session, row_by_key[rng.choice(repeatable_keys)])
        measure_operation(session, row)


def measured_keys(session: CollectorRun, planned_by_key: dict) -> list[str]:
    return [key for key in session.rows.measurement_counts if key in planned_by_key]


def measure_operation(session: CollectorRun, row: design.PlannedRow) -> None:
    torch, device = session.torch, session.runner.device
    with use_matmul_precision(torch, row.dtype):
        in_graph = design.OPERATION_KINDS[row.kind].in_graph
        make_calls = lambda: operations.make_operation_calls(torch, device, row)  # noqa: E731
        session.measure_row(row_identity(row), make_calls, session.active_s, in_graph)


def collect_networks(
    session: CollectorRun,
    setting_groups: Sequence[Sequence[networks.NetworkSetting]],
    deadline_s: float,
    active_s: float,
) -> None:
    """Measures networks until the deadline: first groups with a setting that was never measured, then settings that
    were disturbed in every measurement."""
    setting_by_key = {setting.key: setting for settings in setting_groups for setting in settings}
    rng = random.Random(f"{design.DESIGN_SEED} {session.slice_name}")
    for group_index, settings in enumerate(
        sorted(
            setting_groups, key=lambda group: all(setting.key in session.rows.measurement_counts for setting in group)
        )
    ):
        unsettled_settings = [setting for setting in settings if not session.rows.is_settled(setting.key)]
        if not unsettled_settings or time.monotonic() > deadline_s:
            continue
        collect_network(session, unsettled_settings, deadline_s, active_s)
        repeatable_keys = measured_keys(session, setting_by_key)
        if group_index % NETWORKS_PER_REPEAT == NETWORKS_PER_REPEAT - 1 and repeatable_keys:
            collect_network(session, [setting_by_key[rng.choice(repeatable_keys)]], deadline_s, active_s)


def collect_network(
    session: CollectorRun, wanted_settings: Sequence[networks.NetworkSetting], deadline_s: float, active_s: float
) -> None:
    try:
        loaded_network = networks.LoadedNetwork(session.torch, session.runner.device, wanted_settings[0].network)
    except networks.LOAD_ERRORS as error:
        # Not recorded as a failure of the rows: another version of the package may have this network.
        print(
            f"joulemap collect: {wanted_settings[0].network.name}: {first_error_line(error)}",
            file=sys.stderr,
            flush=True,
        )
        return
    with loaded_network:
        for setting in wanted_settings:
            if time.monotonic() < deadline_s:
                measure_network(session, loaded_network, setting, active_s)


def measure_network(
    session: CollectorRun, loaded_network: networks.LoadedNetwork, setting: networks.NetworkSetting, active_s: float
) -> None:
    identity = {
        "key": setting.key,
        "kind": "network",
        "parameters": design.format_parameters(setting.parameters),
        "dtype": setting.dtype,
        "pass": setting.pass_name,
        "source": setting.network.family,
    }
    with networks.use_setting_precision(session.torch, setting):
        session.measure_row(identity, lambda: [loaded_network.make_call(setting)], active_s, False, counted=True)


def collect_layers(
    session: CollectorRun, setting_groups: Sequence[Sequence[networks.NetworkSetting]], deadline_s: float
) -> None:
    """Measures the GPU time of each operation inside its network; records no energy per operation."""
    profiled_keys = {line["layers_of"] for line in rows.read_json_lines(session.rows.folder) if "layers_of" in line}
    for settings in setting_groups:
        unprofiled_settings = [setting for setting in settings if setting.key not in profiled_keys]
        if not unprofiled_settings or time.monotonic() > deadline_s:
            continue
        try:
            with networks.LoadedNetwork(
                session.torch, session.runner.device, unprofiled_settings[0].network
            ) as loaded_network:
                for setting in unprofiled_settings:
                    with networks.use_setting_precision(session.torch, setting):
                        layer_profile = layers.profile_operations(session.torch, loaded_network.make_call(setting))
                    session.rows.add_layers({"layers_of": setting.key, "slice": session.slice_name, **layer_profile})
        except networks.LOAD_ERRORS as error:
            print(
                f"joulemap collect: {unprofiled_settings[0].network.name}: {first_error_line(error)}",
                file=sys.stderr,
                flush=True,
            )
        gc.collect()
        session.runner.release_memory()


def plan_operations(options: argparse.Namespace) -> list[design.PlannedRow]:
    if options.kinds == [CORNER_ROWS_KIND]:
        return corners.plan_corner_rows()
    if not options.listed:
        return design.plan_designed_rows(options.kinds, options.scale)
    if listed_rows := listed.plan_listed_rows(options.listed):
        return [row for row in listed_rows if not options.kinds or row.kind in options.kinds]
    raise SystemExit(f"joulemap collect: {options.listed} does not contain operations.csv.gz and settings.csv.gz")


def select_network_settings(options: argparse.Namespace) -> list[list[networks.NetworkSetting]]:
    settings_by_network = networks.plan_networks(options.settings, options.held_out, options.package)
    if options.which is None:
        return settings_by_network
    return [[setting for setting in settings if setting.pass_name == options.which] for settings in settings_by_network]


def print_plan(options: argparse.Namespace) -> None:
    planned_rows = plan_operations(options)
    count_by_kind, from_networks = (
        Counter(row.kind for row in planned_rows),
        Counter(row.kind for row in planned_rows if row.source != "designed"),
    )
    print(f"{'kind':<14} {'rows':>6} {'of real layers':>15}")
    for kind, count in count_by_kind.items():
        print(f"{kind:<14} {count:>6} {from_networks[kind]:>15}")
    print(f"{'all':<14} {len(planned_rows):>6} {sum(from_networks.values()):>15}")
    for name in ("dtype", "pass_name"):
        count_by_value = Counter(getattr(row, name) for row in planned_rows)
        print(", ".join(f"{value} {count}" for value, count in sorted(count_by_value.items())))
    if "network" in options.kinds or not (options.kinds or options.listed):
        settings = select_network_settings(options)
        distinct_networks = {setting.network for group in settings for setting in group}
        print(
            f"networks: {len(distinct_networks)} of {len({network.family for network in distinct_networks})} families, "
            f"{sum(map(len, settings))} settings"
        )
    if "compiled" in options.kinds:
        settings = compiled.plan_compiled_settings()
        distinct_networks = {setting.network for group in settings for setting in group}
        print(f"compiled: {len(distinct_networks)} networks, {sum(map(len, settings))} settings, each also run eagerly")


def make_parser() -> argparse.ArgumentParser:
    parser = StrictArgumentParser(prog="joulemap collect", description=__doc__)
    parser.add_argument(
        "--out", type=Path,
        help="output folder; operations and networks that it contains are not measured again",
    )  # fmt: skip
    parser.add_argument(
        "--seconds",
        type=parse_positive_number,
        default=240,
        metavar="S",
        help="measuring time in s, without start-up; default: 240",
    )
    parser.add_argument(
        "--kinds", nargs="*", default=[], metavar="KIND",
        help="kinds of operations to measure, or `network`, `layers`, `compiled`, `corners`",
    )  # fmt: skip
    parser.add_argument(
        "--listed", type=Path, metavar="FOLDER",
        help="measure operations of the networks that FOLDER lists, such as data/seed",
    )  # fmt: skip
    parser.add_argument(
        "--active", type=parse_positive_number, default=0.14, metavar="S",
        help="measuring time of an operation in s; default: 0.14",
    )  # fmt: skip
    parser.add_argument(
        "--network-active", type=parse_positive_number, default=0.6, metavar="S",
        help="measuring time of a network in s; default: 0.6",
    )  # fmt: skip
    parser.add_argument(
        "--settings", type=parse_count, default=8, metavar="N",
        help="settings (batch, size, type, pass) per network; default: 8",
    )  # fmt: skip
    parser.add_argument(
        "--pass", dest="which", choices=networks.NETWORK_PASSES,
        help="only this pass of networks; default: inference and training",
    )  # fmt: skip
    parser.add_argument(
        "--package", choices=sorted(networks.NETWORK_MAKERS),
        help="only networks of this package; default: all packages",
    )  # fmt: skip
    parser.add_argument(
        "--scale", type=parse_positive_number, default=1.0, metavar="F",
        help="factor for the number of operations; default: 1",
    )  # fmt: skip
    parser.add_argument(
        "--held-out", action="store_true", help="measure only the held-out families, which are never fitted"
    )
    parser.add_argument("--simulated", action="store_true", help="run on the CPU with simulated power, for tests")
    parser.add_argument("--plan", action="store_true", help="print the number of operations of each kind and exit")
    parser.add_argument(
        "--summary", action="store_true",
        help="print a summary of the measurements in --out, as Markdown",
    )  # fmt: skip
    parser.add_argument(
        "--tables", type=Path, metavar="FOLDER", help="write the measurements to FOLDER as compressed tables (.csv.gz)"
    )
    return parser


def open_device(options: argparse.Namespace) -> tuple[Any, Any, Any]:
    import torch

    torch.manual_seed(design.DESIGN_SEED)
    if options.simulated:
        return torch, CpuRunner(torch), SimulatedGpu()
    if not torch.cuda.is_available():
        raise SystemExit("joulemap collect: no CUDA device; --simulated runs without one")
    gpu = NvmlGpu(f"GPU-{torch.cuda.get_device_properties(0).uuid}")
    return torch, CudaRunner(torch, gpu.read_state), gpu


def run_collection(options: argparse.Namespace) -> int:
    began_s = time.monotonic()
    torch, runner, gpu = open_device(options)
    session = CollectorRun(torch, runner, gpu, rows.RowStore(options.out), options.active)
    gc.collect()
    gc.freeze()
    gc.disable()
    session.warm_up()
    deadline_s = session.begin_measuring(options.seconds)
    gpu.mean_power = RunningMean()
    begin_time_and_energy = (time.monotonic(), gpu.energy_j())
    if [kind for kind in options.kinds if kind not in NETWORK_KINDS] or not options.kinds:
        planned_rows = plan_operations(options)
        if options.simulated:
            planned_rows = [
                row for row in planned_rows if row.cost.bytes < MAX_CPU_ROW_BYTES and row.cost.flops < MAX_CPU_ROW_FLOPS
            ]
        collect_operations(session, planned_rows, deadline_s)
    if "network" in options.kinds:
        collect_networks(session, select_network_settings(options), deadline_s, options.network_active)
    if "layers" in options.kinds:
        collect_layers(session, select_network_settings(options), deadline_s)
    if "compiled" in options.kinds:
        compiled.collect_compiled_networks(session, deadline_s, options.network_active)
    session.write_remaining_rows()
    energy_j = gpu.energy_j()
    session.rows.add_slice(
        {
            "slice": session.slice_name,
            "seconds": time.monotonic() - began_s,
            "measured": session.measured_count,
            "idle_w": session.idle_w,
            "counter_w": None
            if energy_j is None
            else (energy_j - begin_time_and_energy[1]) / (time.monotonic() - begin_time_and_energy[0]),
            "history_w": gpu.mean_power.mean(),
            "power_limit_w": gpu.power_limit_w(),
            "torch": torch.__version__,
            "cuda": torch.version.cuda,
            "cudnn": torch.backends.cudnn.version() if runner.device == "cuda" else None,
            "python": sys.version.split()[0],
            **gpu.driver_versions(),
        }
    )
    print(
        f"{session.measured_count} rows in {time.monotonic() - began_s:.0f} s; "
        f"{len(session.rows.measurement_counts)} distinct in total"
    )
    return 0


def main(arguments: Optional[Sequence[str]] = None) -> int:
    parser = make_parser()
    options = parser.parse_args(arguments)
    special_kinds = (*NETWORK_KINDS, CORNER_ROWS_KIND)
    unknown_kinds = [kind for kind in options.kinds if kind not in special_kinds and kind not in design.OPERATION_KINDS]
    if unknown_kinds:
        parser.error(
            f"unknown kind {', '.join(unknown_kinds)}; "
            f"choose from {', '.join(design.OPERATION_KINDS)}, {', '.join(special_kinds)}"
        )
    if CORNER_ROWS_KIND in options.kinds and len(options.kinds) > 1:
        parser.error("corners cannot be combined with other kinds: use --kinds corners")
    if options.plan:
        print_plan(options)
        return 0
    if options.out is None:
        parser.error("--out FOLDER is required")
    if options.summary:
        print(summary.summarize_rows(rows.read_measured_rows(options.out)))
        return 0
    if options.tables:
        slices = [line for line in rows.read_json_lines(options.out) if "seconds" in line]
        measured_rows = [design.recompute_cost(row) for row in rows.read_measured_rows(options.out)]
        for name, count in tables.write_tables(measured_rows, slices, options.tables).items():
            print(f"{name}: {count} rows")
        if profile_lines := [line for line in rows.read_json_lines(options.out) if "operations" in line]:
            for name, count in layer_tables.write_layer_tables(profile_lines, options.out, options.tables).items():
                print(f"{name}: {count} rows")
        return 0
    os.environ.setdefault("HF_HUB_OFFLINE", "1")
    return run_collection(options)
