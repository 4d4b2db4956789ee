#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares the energy attributed to each block of real networks with the added GPU energy when the block runs twice.

    make dist
    python3 bench/h200/doubling.py --joulemap build/dist/joulemap-*/bin/joulemap --networks resnet50,bert --folder DIR
    python3 bench/h200/doubling.py --joulemap J --folder DIR [--library FILE]      the analysis alone, anywhere

Without --networks nothing runs, and the data in DIR are analysed. doubling_load.py collects, one process per network,
about 75 s per mode with the default settings. Four methods of attribution each use only the recording of the plain
passes: time-proportional, powers from a library that has not seen the network (--library), regression, and regression
with probing. With --dither-s the network is recorded twice more, unchanged (alone) and with `--dither`. These two use
regression without further information: no library and no blocks run twice. Calibrate first: identical steps hardly
identify the sensor's lag. Settings of the GPU are not changed. Exits 1 when a bar is missed.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import statistics
import subprocess
import sys
import time
from pathlib import Path

SCRIPT_FOLDER = Path(__file__).resolve().parent
sys.path.insert(0, str(SCRIPT_FOLDER))
import recordings  # noqa: E402
from findings import Findings  # noqa: E402
from recordings import doubled  # noqa: E402  pure computation

NETWORKS = ["resnet50", "bert", "gpt2", "vit"]
MIN_ENERGY_SHARE = 0.05
TIME_METHOD, LIBRARY_METHOD, REGRESSION_METHOD, PROBE_METHOD = "time", "library", "regression", "probe"
ALONE_METHOD, DITHER_METHOD = "alone", "dither"
MAX_METHOD_ERRORS = {LIBRARY_METHOD: 0.07, REGRESSION_METHOD: 0.07, PROBE_METHOD: 0.03}
MAX_RUN_S = 600


def record_network(joulemap: str, network: str, options: argparse.Namespace) -> bool:
    """Returns True when all recordings succeed. A network that fails does not stop the others."""
    has_succeeded = record_load(joulemap, network, options, options.folder)
    if options.dither_s > 0:
        plain_options = argparse.Namespace(**{**vars(options), "rounds": 0, "probe_s": 0, "plain_s": options.dither_s})
        has_succeeded = record_load(joulemap, network, plain_options, options.folder / ALONE_METHOD) and has_succeeded
        has_succeeded = (
            record_load(joulemap, network, plain_options, options.folder / DITHER_METHOD, "--dither") and has_succeeded
        )
    return has_succeeded


def record_load(joulemap: str, network: str, options: argparse.Namespace, folder: Path, *more: str) -> bool:
    begun = time.monotonic()
    folder.mkdir(parents=True, exist_ok=True)
    load = [sys.executable, str(SCRIPT_FOLDER / "doubling_load.py"), network, "--out", str(folder)]
    for name in ("modes", "seconds", "rounds", "plain_s", "probe_s", "seed"):
        load += [f"--{name.replace('_', '-')}", str(getattr(options, name))]
    command = [joulemap, "record", *options.record.split(), *more, "-o", str(folder / f"{network}.joule"), "--", *load]
    print(f"{network}: {' '.join(command)}", file=sys.stderr, flush=True)
    try:
        ran = subprocess.run(command, timeout=MAX_RUN_S, env={**os.environ, "PYTHONUNBUFFERED": "1"}, check=False)
        has_succeeded = ran.returncode == 0
    except subprocess.TimeoutExpired:
        has_succeeded = False
    print(
        f"{network}: {time.monotonic() - begun:.0f} s, {'done' if has_succeeded else 'FAILED'}",
        file=sys.stderr,
        flush=True,
    )
    return has_succeeded


class Recording(recordings.Recording):
    def report_intervals(self, load_log: dict, library: Path | None) -> dict[str, doubled.ReportedInterval]:
        """Returns attributed energies by method. Each method uses only the span that it is given."""
        groups, device = load_log["groups"], load_log["device"]

        def report_interval(span: dict, *more: str, idle_share: float | None = None) -> doubled.ReportedInterval:
            return doubled.make_reported_interval(
                self.report(["--by", "layer", *more], span), groups, device, idle_share
            )

        intervals_by_method = {TIME_METHOD: report_interval(load_log["recorded"], "--mode", "integral")}
        if library is not None:
            intervals_by_method[LIBRARY_METHOD] = report_interval(load_log["recorded"], "--library", str(library))
        intervals_by_method[REGRESSION_METHOD] = report_interval(load_log["recorded"])
        if load_log["probed"] is not None:
            intervals_by_method[PROBE_METHOD] = report_interval(
                load_log["probed"], idle_share=intervals_by_method[REGRESSION_METHOD].idle_share
            )
        for method_name in (ALONE_METHOD, DITHER_METHOD):
            load_log_file = self.file.parent / method_name / f"{load_log['network']}-{load_log['mode']}.json"
            if load_log_file.exists():
                intervals_by_method[method_name] = report_interval_of_other_run(
                    self.joulemap, load_log_file, intervals_by_method[REGRESSION_METHOD]
                )
        return intervals_by_method


def report_interval_of_other_run(
    joulemap: str, file: Path, regression_interval: doubled.ReportedInterval
) -> doubled.ReportedInterval:
    load_log = json.loads(file.read_text())
    recording = recordings.Recording(joulemap, file.parent / f"{load_log['network']}.joule")
    report = recording.report(["--by", "layer", "--library", "none"], load_log["recorded"])
    return doubled.make_reported_interval(
        report, load_log["groups"], load_log["device"], regression_interval.idle_share
    )


def has_library_option(joulemap: str) -> bool:
    load_log = subprocess.run([joulemap, "report", "--help"], capture_output=True, text=True, check=False)
    return "--library" in load_log.stdout


def describe_noise(loops: list, joules: list[float] | None) -> str:
    """Describes the spread between equal loops, by the counter and by windows."""

    def spread(values: list[float]) -> float:
        neighbours = [current_value / next_value - 1 for current_value, next_value in zip(values, values[1:])]
        return doubled.rms(neighbours) / math.sqrt(2)

    plain_indices = [i for i, loop in enumerate(loops) if loop.block is None]
    text = f"{spread([loops[i].pass_j for i in plain_indices]):.2%} by the counter read by hand"
    if joules is None:
        return f"{spread([loops[i].pass_j for i in plain_indices]):.2%}"
    windows = spread([joules[i] / loops[i].passes for i in plain_indices])
    ratio = sum(joules) / sum(loop.joules for loop in loops)
    return f"{text}, {windows:.2%} by windows (whose sum is {ratio:.4f} of it)"


def write_network(
    findings: Findings, load_log: dict, columns: dict[str, doubled.ReportedInterval]
) -> dict[str, list[float]]:
    loops = [doubled.PassLoop(*loop) for loop in load_log["loops"]]
    pass_j, pass_s = doubled.mean_plain_pass(loops)
    extra_energies = doubled.compute_extra_energies(loops)
    regression_interval = columns[REGRESSION_METHOD]
    rows = doubled.compare_blocks(
        doubled.MeasuredBlocks(pass_j, pass_s, extra_energies),
        regression_interval,
        load_log["recorded"]["passes"],
        columns,
    )
    findings.add_line(f"\n## {load_log['network']}, {load_log['mode']}\n")
    findings.add_line(f"A plain pass takes {pass_s * 1e3:.2f} ms and {pass_j:.3f} J; neighbouring plain loops differ by "
                 f"{describe_noise(loops, load_log['joules_by_windows'])}.\n")  # fmt: skip
    names = list(columns)
    findings.add_line("| block | twice | of the pass | working | " + " | ".join(names) + " | basis |")
    findings.add_line("|---|---|---|---|" + "---|" * (len(names) + 1))
    for row in rows:
        half_width_text = "" if row.half_width_j is None else f" +- {row.half_width_j:.4f}"
        cells = " | ".join(format_error_cell(row.attributed.get(name)) for name in names)
        basis = row.attributed[names[-1]].basis if names[-1] in row.attributed else "-"
        truth = f"{row.doubled_j:.4f}{half_width_text} J | {row.share:.1%} | {row.busy_j:.4f} J"
        findings.add_line(f"| {row.block} | {truth} | {cells} | {basis} |")
    for block, reason in load_log["refused"].items():
        findings.add_line(f"| {block} | not run twice: {reason} |" + " |" * (len(names) + 3))
    block_sum_text = "" if doubled.has_shared_modules({row.block: load_log["groups"][row.block] for row in rows}) else (
        f"Blocks add up to {sum(row.share for row in rows):.3f} of the plain pass. ")  # fmt: skip
    widths = [row.half_width_j / row.doubled_j for row in rows if row.half_width_j and row.share >= MIN_ENERGY_SHARE]
    if widths:
        uncertainty_text = f"+-{statistics.median(widths):.1%} (90 %, median)"
        findings.add_line(f"\nWhat blocks above {MIN_ENERGY_SHARE:.0%} cost is known to {uncertainty_text}.")
    recorded_j = regression_interval.total_j / load_log["recorded"]["passes"]
    recorded_pass_text = (
        f"The recorded pass used {recorded_j / pass_j:.3f} of it, "
        f"{regression_interval.idle_share:.1%} while the GPU waited."
    )
    findings.add_line(f"\n{block_sum_text}{recorded_pass_text}")
    return {name: doubled.attribution_errors(rows, name, MIN_ENERGY_SHARE) for name in names}


def format_error_cell(attributed: doubled.AttributedEnergy | None) -> str:
    return "-" if attributed is None or attributed.error is None else f"{attributed.error:+.1%}"


def write_summary(findings: Findings, errors: dict[str, dict[str, list[float]]]) -> None:
    """Writes errors by network and mode, then compares all of them with the bars."""
    available_methods = {name for network_errors in errors.values() for name in network_errors}
    names = [
        name
        for name in (TIME_METHOD, LIBRARY_METHOD, REGRESSION_METHOD, PROBE_METHOD, ALONE_METHOD, DITHER_METHOD)
        if name in available_methods
    ]
    findings.add_line(f"\n## Blocks above {MIN_ENERGY_SHARE:.0%} of the pass, root mean square error\n")
    findings.add_line("| | blocks | " + " | ".join(names) + " |\n|---|---|" + "---|" * len(names))
    for network, errors_by_method in errors.items():
        cells = " | ".join(f"{doubled.rms(errors_by_method.get(name, [])):.1%}" for name in names)
        findings.add_line(f"| {network} | {max(map(len, errors_by_method.values()), default=0)} | {cells} |")
    cells, verdicts = [], []
    for name in names:
        pooled_errors = [error for network_errors in errors.values() for error in network_errors.get(name, [])]
        error = doubled.rms(pooled_errors)
        cells.append(f"{error:.1%}")
        verdicts.append(
            f"<= {MAX_METHOD_ERRORS[name]:.0%}: {findings.bar(name, error <= MAX_METHOD_ERRORS[name])}"
            if name in MAX_METHOD_ERRORS
            else ""
        )
    findings.add_line(f"| all | | {' | '.join(cells)} |\n| bar | | {' | '.join(verdicts)} |")


def analyse_recordings(joulemap: str, options: argparse.Namespace, findings: Findings) -> None:
    library = options.library if options.library and has_library_option(joulemap) else None
    if options.library and library is None:
        findings.add_line("This joulemap has no --library: that column is left out.")
    recordings_by_name: dict[str, Recording] = {}
    errors = {}
    for file in sorted(options.folder.glob("*-*.json")):
        load_log = json.loads(file.read_text())
        try:
            name = load_log["network"]
            if name not in recordings_by_name:
                recordings_by_name[name] = Recording(joulemap, options.folder / f"{name}.joule")
            columns = recordings_by_name[name].report_intervals(load_log, library)
            errors[f"{name}, {load_log['mode']}"] = write_network(findings, load_log, columns)
        except (subprocess.SubprocessError, ValueError, LookupError, OSError) as error:
            why = getattr(error, "stderr", None) or str(error)
            findings.add_line(
                f"\n{file.name}: **not analysed**: {why.strip().splitlines()[-1] if why.strip() else error!r}"
            )
            findings.missed.append(file.name)
    if not errors:
        findings.missed.append("nothing was collected")
        return
    write_summary(findings, errors)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--joulemap", type=Path, required=True)
    parser.add_argument("--folder", type=Path, required=True, help="recordings and truths, kept")
    parser.add_argument("--networks", default="", help=f"collect these first: {','.join(NETWORKS)}, tiny, or all")
    parser.add_argument("--modes", default="inference,train")
    parser.add_argument("--seconds", type=float, default=0.8, help="of a loop")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--plain-s", type=float, default=8, help="of plain passes that are recorded")
    parser.add_argument("--probe-s", type=float, default=15, help="of probing at most; 0: none")
    parser.add_argument("--dither-s", type=float, default=0, help="of plain passes recorded once more with --dither")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--record", default="--trace full --period 100", help="options of record")
    parser.add_argument("--library", type=Path, help="powers of kernels, learnt without these networks")
    parser.add_argument("--collect-only", action="store_true")
    parser.add_argument("--markdown", type=Path)
    options = parser.parse_args()
    joulemap = str(options.joulemap.resolve())
    options.folder.mkdir(parents=True, exist_ok=True)
    networks = NETWORKS if options.networks == "all" else [name for name in options.networks.split(",") if name]
    failed_networks = [name for name in networks if not record_network(joulemap, name, options)]
    if options.collect_only:
        return 1 if failed_networks else 0
    findings = Findings()
    findings.missed += [f"collecting {name}" for name in failed_networks]
    analyse_recordings(joulemap, options, findings)
    return findings.conclude(options.markdown)


if __name__ == "__main__":
    sys.exit(main())
