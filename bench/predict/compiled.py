#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares the measured energy savings of torch.compile with the predicted ones.

    python3 bench/predict/compiled.py [data/h200/compiled.csv.gz] [--program build/bin/joulemap] [--json FILE]

Every setting of the table was measured eagerly and compiled, one after the other in the same run. The script traces it
as `joulemap.list_operations` does, predicts both modes, and prints joules, the ratio of compiled to eager, and errors.
Needs PyTorch, and the packages that contain the networks (torchvision, timm, transformers); no GPU.
"""

from __future__ import annotations

import argparse
import csv
import gzip
import json
import math
import statistics
import subprocess
import sys
import warnings
from collections import defaultdict
from pathlib import Path
from typing import Callable, NamedTuple, Optional, Sequence

ROOT = Path(__file__).resolve().parents[2]
EXECUTION_MODES = ("eager", "compiled")
MAX_RUN_S = 300


class Setting(NamedTuple):
    package: str
    name: str
    batch: int
    size: int
    dtype: str
    which: str

    @property
    def title(self) -> str:
        return f"{self.name}, {self.batch} x {self.size}, {self.dtype}"


class CompiledCase(NamedTuple):
    setting: Setting
    measured: dict  # J by mode
    predicted: dict

    @property
    def ratios(self) -> tuple[float, float]:
        """Compiled over eager, measured and predicted."""
        measured_ratio, predicted_ratio = (
            (joules["compiled"] / joules["eager"]) for joules in (self.measured, self.predicted)
        )
        return measured_ratio, predicted_ratio

    def error(self, quantity_name: str) -> float:
        """Error of a mode's joules or of the `ratio`, in percent of the measured value."""
        measured_value, predicted_value = (
            self.ratios if quantity_name == "ratio" else (self.measured[quantity_name], self.predicted[quantity_name])
        )
        return 100 * (predicted_value - measured_value) / measured_value


def read(table: Path) -> dict[Setting, dict[str, float]]:
    """Joules by mode; for repeated measurements the mean over runs that have both modes."""
    by_run: dict = defaultdict(lambda: defaultdict(list))
    with gzip.open(table, "rt", newline="") as file:
        for row in csv.DictReader(file):
            result = dict(pair.split("=") for pair in row["parameters"].split(";"))
            numbers = int(result["batch"]), int(result["size"])
            setting = Setting(result["package"], result["name"], *numbers, row["dtype"], row["pass"])
            by_run[setting, row["slice"]][row["way"]].append(float(row["energy_j"]))
    runs_by_setting: dict = defaultdict(list)
    for (setting, _), joules_by_mode in by_run.items():
        if all(joules_by_mode[mode] for mode in EXECUTION_MODES):
            runs_by_setting[setting].append({mode: statistics.mean(joules_by_mode[mode]) for mode in EXECUTION_MODES})
    return {
        setting: {mode: statistics.mean(run[mode] for run in runs) for mode in EXECUTION_MODES}
        for setting, runs in runs_by_setting.items()
    }


def trace_operations(setting: Setting) -> dict:
    """Returns the list of operations, with the collector's inputs, loss and optimizer."""
    sys.path.insert(0, str(ROOT / "tools"))
    import list_network_operations as lister

    networks_by_name = {
        (listed_network.package, listed_network.name): listed_network
        for listed_network in lister.networks.list_all_networks(held_out=False)
    }
    network = networks_by_name[setting.package, setting.name]
    network_setting = lister.networks.NetworkSetting(network, *setting[2:])
    try:
        return lister.operations_of_setting(
            lister.networks.LoadedNetwork(lister.torch, "meta", network), "meta", network_setting
        )
    except (RuntimeError, NotImplementedError, ValueError):  # construction reads data, which "meta" tensors lack
        return lister.operations_of_setting(
            lister.networks.LoadedNetwork(lister.torch, "cpu", network), "cpu", network_setting
        )


def make_predictor(program: Path, more: Sequence[str]) -> Callable[[dict, str], float]:
    def predict(operations: dict, mode: str) -> float:
        command = [str(program), "predict", "-", "--execution", mode, "--json", *more]
        result = json.dumps(operations)
        completed_process = subprocess.run(
            command, input=result, capture_output=True, text=True, timeout=MAX_RUN_S, check=False
        )
        if not completed_process.stdout.strip():
            raise SystemExit(f"{' '.join(command)}: {completed_process.stderr.strip()}")
        return json.loads(completed_process.stdout)["energy_j"]

    return predict


def predict_cases(
    measured: dict[Setting, dict[str, float]], trace: Callable[[Setting], dict], predict: Callable[[dict, str], float]
) -> list[CompiledCase]:
    cases = []
    for setting in sorted(
        measured, key=lambda case_setting: (case_setting.which, case_setting.name, case_setting.batch)
    ):
        operations = trace(setting)
        cases.append(
            CompiledCase(setting, measured[setting], {mode: predict(operations, mode) for mode in EXECUTION_MODES})
        )
    return cases


def summarize_errors(cases: Sequence[CompiledCase], quantity_name: str) -> dict[str, float]:
    errors = [case.error(quantity_name) for case in cases]
    return {
        "settings": len(errors),
        "rmspe": math.sqrt(statistics.mean(error**2 for error in errors)),
        "median": statistics.median(map(abs, errors)),
        "bias": statistics.mean(errors),
    }


def format_cases(cases: Sequence[CompiledCase]) -> str:
    lines = [
        "| setting | eager, J: measured | predicted | compiled, J: measured | predicted | compiled / eager: measured "
        "| predicted | error eager | compiled | ratio |",
        f"|---|{'---:|' * 9}",
    ]
    for case in cases:
        joules = [
            f"{joules_by_mode[mode]:.3g}"
            for mode in EXECUTION_MODES
            for joules_by_mode in (case.measured, case.predicted)
        ]
        ratios = [f"{ratio:.2f}" for ratio in case.ratios]
        errors = [f"{case.error(error_quantity):+.1f} %" for error_quantity in (*EXECUTION_MODES, "ratio")]
        lines.append(f"| {' | '.join([f'{case.setting.which}: {case.setting.title}', *joules, *ratios, *errors])} |")
    lines += ["", "| | | settings | RMSPE | median | bias |", "|---|---|---:|---:|---:|---:|"]
    for pass_name, pass_cases in group_by_pass(cases).items():
        for quantity_name in (*EXECUTION_MODES, "ratio"):
            result = summarize_errors(pass_cases, quantity_name)
            errors = " | ".join(f"{result[name]:.1f} %" for name in ("rmspe", "median", "bias"))
            lines.append(f"| {pass_name} | {quantity_name} | {result['settings']} | {errors} |")
    return "\n".join(lines)


def group_by_pass(cases: Sequence[CompiledCase]) -> dict[str, list[CompiledCase]]:
    passes = sorted({case.setting.which for case in cases})
    groups = {pass_name: [case for case in cases if case.setting.which == pass_name] for pass_name in passes}
    return {**groups, "all": list(cases)} if len(passes) > 1 else groups


def main(arguments: Optional[Sequence[str]] = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("table", type=Path, nargs="?", default=ROOT / "data" / "h200" / "compiled.csv.gz")
    parser.add_argument("--program", type=Path, default=ROOT / "build" / "bin" / "joulemap")
    parser.add_argument("--profile", help="for joulemap predict: a file of joulemap model fit")
    parser.add_argument("--host-factor", default="1", help="for joulemap predict: how much slower the host was (1)")
    parser.add_argument("--json", type=Path, help="write each case there, too")
    options = parser.parse_args(arguments)
    warnings.filterwarnings("ignore")
    measured = read(options.table)
    if not measured:
        raise SystemExit(f"{options.table}: no setting was measured both eagerly and compiled")
    extra_arguments = [
        "--host-factor",
        options.host_factor,
        *(["--profile", options.profile] if options.profile else []),
    ]
    cases = predict_cases(measured, trace_operations, make_predictor(options.program, extra_arguments))
    print(format_cases(cases))
    if options.json:
        results = [
            {**case.setting._asdict(), "measured_j": case.measured, "predicted_j": case.predicted} for case in cases
        ]
        options.json.write_text(json.dumps(results, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
