#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Adds the rows measured by bench/h200/collect.py to data/ and refits the profile of the H200.

    python3 tools/add_measured_rows.py FOLDER

FOLDER contains `rows-*.jsonl.gz` and `slices-*.jsonl.gz`, and `held-out-*.jsonl.gz` with networks that evaluate
predictions. Listing new networks (data/networks) needs PyTorch; fitting needs the built program. Rows already in the
tables stay unchanged, so the script can be run repeatedly.
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
DATA_FOLDER = ROOT / "data"
DEVICE_PROFILE_FILE = DATA_FOLDER / "devices" / "h200.json"
sys.path.insert(0, str(ROOT / "python" / "joulemap"))

from _collect import command, networks, tables  # noqa: E402

HELD_OUT_PREFIX = "held-out-"


def add_rows(new: list[Path], folder: Path) -> None:
    """Merges new rows into the tables of a folder."""
    with tempfile.TemporaryDirectory() as temporary_folder:
        rows = Path(temporary_folder)
        for path in [*folder.glob("*.csv.gz"), *folder.glob("*.csv"), *new]:
            shutil.copy(path, rows / path.name.removeprefix(HELD_OUT_PREFIX))
        if command.main(["--out", str(rows), "--tables", str(folder)]) != 0:
            raise SystemExit(f"{folder}: the tables could not be written")


def read_measured_settings(folder: Path) -> set[tuple]:
    measured_settings = set()
    for row in tables.read_csv_records(folder / "networks.csv.gz"):
        parameters = dict(pair.split("=") for pair in row["parameters"].split(";"))
        measured_settings.add((parameters["name"], parameters["batch"], parameters["size"], row["dtype"], row["pass"]))
    return measured_settings


def list_networks(held_out: bool, folder: Path) -> None:
    """Lists the networks that no list contains yet."""
    columns = ("network", "batch", "size", "dtype", "pass")
    lines = tables.read_csv_records(DATA_FOLDER / "networks" / "settings.csv.gz")
    listed_settings = {tuple(line[name] for name in columns) for line in lines}
    known_network_names = {network.name for network in networks.list_all_networks(held_out)}
    unlisted_names = sorted(
        {setting[0] for setting in read_measured_settings(folder) - listed_settings} & known_network_names
    )
    if not unlisted_names:
        return
    tool = [sys.executable, str(ROOT / "tools" / "list_network_operations.py"), "--each", "0"]
    tool += [
        "--measured",
        str(folder / "networks.csv.gz"),
        *(["--held-out"] if held_out else []),
        "--only",
        *unlisted_names,
    ]
    subprocess.run(tool, check=True)


def fit_device_profile(program: Path) -> None:
    software = json.loads(DEVICE_PROFILE_FILE.read_text())["software"]
    subprocess.run(
        [str(program), "model", "fit", str(DATA_FOLDER / "h200"), "-o", str(DEVICE_PROFILE_FILE)], check=True
    )
    # The program has no record of the software that the rows were measured with.
    DEVICE_PROFILE_FILE.write_text(
        DEVICE_PROFILE_FILE.read_text().replace('"software":""', f'"software":{json.dumps(software)}', 1)
    )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--program", type=Path, default=ROOT / "build" / "bin" / "joulemap")
    parser.add_argument("--no-fit", action="store_true", help="update the tables only")
    options = parser.parse_args()
    new = sorted(options.folder.glob("*.jsonl.gz"))
    if not new:
        raise SystemExit(f"{options.folder} has no rows (*.jsonl.gz)")
    fitting_paths = [path for path in new if not path.name.startswith(HELD_OUT_PREFIX)]
    held_out_paths = [path for path in new if path.name.startswith(HELD_OUT_PREFIX)]
    for is_held_out, paths, folder in (
        (False, fitting_paths, DATA_FOLDER / "h200"),
        (True, held_out_paths, DATA_FOLDER / "held-out"),
    ):
        if paths:
            add_rows(paths, folder)
            list_networks(is_held_out, folder)
    if not options.no_fit:
        fit_device_profile(options.program)
    return 0


if __name__ == "__main__":
    sys.exit(main())
