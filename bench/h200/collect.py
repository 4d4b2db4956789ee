#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Measures one batch of training data for predictions: operations, then whole networks, compressed for transfer.

    python3 bench/h200/collect.py --operations 240 --networks 120 --earlier FOLDER --out FOLDER

    python3 bench/h200/collect.py --operations 0 --recurrent 80 --recurrent-networks 40 --out FOLDER

measures single recurrent layers, and the recurrent networks on which their predictions are evaluated;
tools/add_measured_rows.py then adds the rows to data/ and fits the profile again.

Rows of earlier batches (in --earlier: `*.jsonl.gz`, or tables as in data/h200) are not measured again. A collector
that crashes on a row is restarted and skips that row. New files in --out: rows-TIME.jsonl.gz,
slices-TIME.jsonl.gz, log.txt. No build is needed.
"""

from __future__ import annotations

import argparse
import gzip
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
COLLECTOR_PROGRAM = (
    "import sys; sys.path.insert(0, sys.argv.pop(1)); from _collect.command import main; sys.exit(main())"
)
# A restart of the collector takes about this long, in s: with less time left it is not worthwhile.
MIN_RESTART_S = 20
START_AND_EXIT_S = 8


def run_collector(folder: Path, seconds: float, more: list[str], log) -> None:
    deadline_s = time.monotonic() + seconds
    while (remaining_s := deadline_s - time.monotonic()) > MIN_RESTART_S:
        command = [sys.executable, "-c", COLLECTOR_PROGRAM, str(ROOT / "python" / "joulemap"), "--out", str(folder)]
        command += ["--seconds", f"{remaining_s - START_AND_EXIT_S:.0f}", *more]
        print("+", " ".join(command[3:]), file=log, flush=True)
        try:
            exit_code = subprocess.run(
                command, stdout=log, stderr=log, timeout=remaining_s + 30, check=False
            ).returncode
        except subprocess.TimeoutExpired:
            exit_code = -1
        print(f"ended with {exit_code}", file=log, flush=True)
        if exit_code == 0:
            return


def copy_earlier_results(earlier_folder: Path | None, folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for kind in ("*.jsonl.gz", "*.csv.gz"):
        for path in sorted(earlier_folder.glob(kind)) if earlier_folder else []:
            shutil.copy(path, folder)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--operations", type=float, default=240, help="seconds for operations")
    parser.add_argument("--kinds", nargs="*", default=[], help="of operations; all, where none is named")
    parser.add_argument("--networks", type=float, default=0, help="seconds for whole networks")
    parser.add_argument("--layers", type=float, default=0, help="seconds for the times of operations within networks")
    parser.add_argument("--seed-layers", type=float, default=0, help="seconds for the operations listed in data/seed")
    parser.add_argument("--compiled", type=float, default=0, help="seconds for networks under torch.compile")
    parser.add_argument("--held-out", type=float, default=0, help="seconds for networks that predictions are judged by")
    parser.add_argument("--recurrent", type=float, default=0, help="seconds for recurrent layers alone")
    parser.add_argument(
        "--recurrent-networks",
        type=float,
        default=0,
        help="seconds for recurrent networks that predictions are judged by",
    )
    parser.add_argument("--earlier", type=Path, help="folder with the rows of earlier slices")
    parser.add_argument(
        "--earlier-held-out", type=Path, help="the same, of the networks that predictions are judged by"
    )
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument(
        "--more", nargs="*", default=[], help="arguments for the collector, without their dashes: active=0.2"
    )
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    collector_arguments = [f"--{argument}" for argument in options.more]
    with tempfile.TemporaryDirectory() as temporary_folder, (options.out / "log.txt").open("a") as log:
        folder = Path(temporary_folder)
        copy_earlier_results(options.earlier, folder)
        copy_earlier_results(options.earlier_held_out, folder / "held-out")
        if options.operations:
            run_collector(
                folder,
                options.operations,
                [*(["--kinds", *options.kinds] if options.kinds else []), *collector_arguments],
                log,
            )
        if options.recurrent:
            run_collector(folder, options.recurrent, ["--kinds", "recurrent", *collector_arguments], log)
        if options.recurrent_networks:
            recurrent_arguments = ["--kinds", "network", "--held-out", "--package", "recurrent", "--settings", "4"]
            run_collector(
                folder / "held-out", options.recurrent_networks, [*recurrent_arguments, *collector_arguments], log
            )
        if options.seed_layers:
            run_collector(
                folder, options.seed_layers, ["--listed", str(ROOT / "data" / "seed"), *collector_arguments], log
            )
        if options.networks:
            run_collector(folder, options.networks, ["--kinds", "network", *collector_arguments], log)
        if options.layers:
            run_collector(folder, options.layers, ["--kinds", "layers", *collector_arguments], log)
        if options.compiled:
            run_collector(folder, options.compiled, ["--kinds", "compiled", *collector_arguments], log)
        if options.held_out:
            run_collector(
                folder / "held-out", options.held_out, ["--kinds", "network", "--held-out", *collector_arguments], log
            )
        timestamp = time.strftime("%Y%m%dT%H%M%S", time.gmtime())
        for path in sorted(folder.rglob("*.jsonl")):
            name = f"held-out-{path.stem}" if path.parent != folder else path.stem
            (options.out / f"{name}-{timestamp}.jsonl.gz").write_bytes(gzip.compress(path.read_bytes(), mtime=0))
    print((options.out / "log.txt").read_text()[-6000:])
    return 0


if __name__ == "__main__":
    sys.exit(main())
