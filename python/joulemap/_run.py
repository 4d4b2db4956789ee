# SPDX-License-Identifier: Apache-2.0
"""jm.load: the contents of a recording as Python data. All values come from the output of `joulemap report` and
`joulemap export`."""

from __future__ import annotations

import csv
import io
import json
import os
import subprocess
from typing import Any, Optional, Sequence, Union

from ._layer_steps import LayerSteps
from ._ledger import Ledger, merge_ledgers
from ._library import JoulemapError
from ._recorder import joulemap_program_path

Path = Union[str, "os.PathLike[str]"]
MACHINE_PARTS = ("cpu", "ram", "gpu")


def run_joulemap(*arguments: object) -> str:
    """Returns the output of `joulemap ARGUMENTS...`. A failure raises JoulemapError with its message and remedy."""
    process = subprocess.run(
        [joulemap_program_path(), *map(os.fspath, map(_to_command_argument, arguments))], capture_output=True, text=True
    )
    if process.returncode != 0:
        raise JoulemapError(process.stderr.replace("joulemap: ", "").strip() or f"exit code {process.returncode}")
    return process.stdout


def _to_command_argument(argument: object) -> Any:
    return argument if isinstance(argument, os.PathLike) else str(argument)


def validate_excluded_parts(exclude: Sequence[str]) -> tuple:
    """Validates the parts in exclude=["ram"]: one name or several."""
    part_names = (exclude,) if isinstance(exclude, str) else tuple(exclude or ())
    for part_name in part_names:
        if part_name not in MACHINE_PARTS:
            raise ValueError(f"exclude must be one of {', '.join(map(repr, MACHINE_PARTS))}, not {part_name!r}")
    if set(part_names) == set(MACHINE_PARTS):
        raise ValueError("exclude excludes all parts")
    return part_names


class Run:
    """A recording: one file, or the parts of one run. All values come from `joulemap report` and `joulemap export`."""

    def __init__(self, files: Sequence[Path], exclude: Sequence[str] = ()) -> None:
        self.files = [os.path.abspath(file) for file in files]  # absolute paths of its files
        self._excluded_parts = validate_excluded_parts(exclude)

    def ledger(
        self,
        by: str = "layer",
        *,
        apart: bool = False,
        mode: Optional[str] = None,
        time: Optional[tuple] = None,
        library: Optional[Path] = None,
    ) -> Ledger:
        """The energy by layer, module, domain, phase, op, tensor, function, region, kernel, stack, step, epoch,
        rank, request or token. With apart=True, CPU, RAM and GPU have separate rows. Otherwise CPU and RAM share one
        row; it has no energy if they are estimated and the GPU is measured. `mode`, `time` (a tuple in s) and
        `library` are the options of `joulemap report`."""
        options: list = ["--by", by]
        if mode is not None:
            options += ["--mode", mode]
        if time is not None:
            options += ["--time", ",".join(str(bound_s) for bound_s in time)]
        if library is not None:
            options += ["--library", library]
        included_parts = [machine_part for machine_part in MACHINE_PARTS if machine_part not in self._excluded_parts]
        if not apart:
            return self._load_ledger(options, included_parts)
        return merge_ledgers([self._load_ledger(options, [machine_part]) for machine_part in included_parts])

    def _load_ledger(self, options: list, included_parts: list) -> Ledger:
        excluded_parts = [machine_part for machine_part in MACHINE_PARTS if machine_part not in included_parts]
        options = [*options, *(["--exclude", ",".join(excluded_parts)] if excluded_parts else [])]
        report_json = json.loads(run_joulemap("report", *self._files_to_read(), *options, "--json"))
        if excluded_parts:  # rows of excluded parts have no energy
            excluded_devices = [
                machine_part
                for machine_part in ("cpu", "gpu")
                if machine_part in excluded_parts and (machine_part == "gpu" or "ram" in excluded_parts)
            ]
            report_json["rows"] = [
                row for row in report_json["rows"] if not _runs_on_excluded_device(row, excluded_devices)
            ]
        return Ledger(report_json, lambda: run_joulemap("report", *self._files_to_read(), *options))

    def report(self, by: str = "layer", **options: Any) -> Ledger:
        """Alias of ledger(): printing it shows the table of `joulemap report`."""
        return self.ledger(by, **options)

    def steps(self) -> Ledger:
        """The energy of the machine in each step, in order, evaluation steps included."""
        return self.ledger("step")

    def epochs(self) -> Ledger:
        """The energy of the machine in each epoch, in order."""
        return self.ledger("epoch")

    def _files_to_read(self) -> list:
        return self.files

    def __repr__(self) -> str:
        return f"<joulemap.Run {', '.join(self.files)}>"

    def _repr_html_(self) -> str:
        return self.ledger()._repr_html_()

    @property
    def joules(self) -> Optional[float]:
        """Sum over the counted domains, in J: measured if any domain was measured, otherwise estimated."""
        return self.ledger("domain").joules

    @property
    def energy_j(self) -> Optional[float]:
        """Same value as `joules`."""
        return self.joules

    @property
    def low_j(self) -> Optional[float]:
        """Lower bound of the 90 % interval of `energy_j`, as if the errors of domains were fully correlated."""
        return self.ledger("domain").low_j

    @property
    def high_j(self) -> Optional[float]:
        """Upper bound of the 90 % interval of `energy_j`, as if the errors of domains were fully correlated."""
        return self.ledger("domain").high_j

    @property
    def time_s(self) -> Optional[float]:
        """Duration of the recording, in s."""
        return self.ledger("domain").time_s

    def to_pandas(self, by: str = "layer", per: str = "sum") -> Any:
        """A DataFrame; needs pandas. `per` is "sum" for sums over the run, "mean" for the run divided by its number
        of steps, or "step" for one column per layer and one row per step, evaluation steps not included."""
        return self._select_rows(by, per).to_pandas()

    def to_csv(self, path: Path, by: str = "layer", per: str = "sum") -> None:
        """Writes the table of to_pandas() as CSV; needs no other package."""
        self._select_rows(by, per).to_csv(path)

    def to_parquet(self, path: Path, by: str = "layer", per: str = "sum") -> None:
        """Writes the table of to_pandas() as Parquet; needs pyarrow."""
        self._select_rows(by, per).to_parquet(path)

    def layer_steps(self, layers: Union[None, str, Sequence[str]] = None) -> LayerSteps:
        """The energy of each layer in each step, up to 2000 steps. `layers`: only columns whose name contains this
        text, or one of these texts."""
        exclude_options = ["--exclude", ",".join(self._excluded_parts)] if self._excluded_parts else []
        csv_text = run_joulemap("export", *self._files_to_read(), "--to", "csv", "--by", "layer-step", *exclude_options)
        layer_steps_table = LayerSteps(csv.DictReader(io.StringIO(csv_text, newline="")))
        return layer_steps_table if layers is None else layer_steps_table.select_layers(layers)

    def _select_rows(self, by: str, per: str) -> Union[Ledger, LayerSteps]:
        if per not in ("sum", "mean", "step"):
            raise ValueError(f'per must be "sum" (the run), "mean" (mean step) or "step" (every step), not {per!r}')
        if per == "step":
            if by != "layer":
                raise ValueError(f'per="step" needs by="layer", not {by!r}')
            return self.layer_steps()
        ledger = self.ledger(by)
        return ledger if per == "sum" else ledger.per_step(ledger.steps)

    def plot(
        self,
        path: Path,
        kind: str = "violin",
        by: Optional[str] = None,
        layers: Union[None, str, Sequence[str]] = None,
        smooth: Optional[int] = None,
    ) -> None:
        """Draws a plot like `joulemap report --plot KIND -o PATH`: timeline, violin, box, lines, bars, loss, flame or
        heatmap, as .svg, .png or .pdf. `layers`: only those whose device and path contain this text, or one of
        these texts. `smooth`: number of points over which lines are averaged."""
        options: list = ["--by", by] if by else []
        if layers:
            options += ["--filter", layers if isinstance(layers, str) else "|".join(layers)]
        if smooth is not None:
            options += ["--smooth", smooth]
        if self._excluded_parts:
            options += ["--exclude", ",".join(self._excluded_parts)]
        run_joulemap("report", *self._files_to_read(), "--plot", kind, "-o", path, *options)

    def to_tensorboard(self, folder: Path) -> None:
        """Adds an event file to the folder, like `joulemap export`."""
        run_joulemap("export", *self._files_to_read(), "--to", "tensorboard", "-o", folder)


def _runs_on_excluded_device(row: dict, excluded_devices: list) -> bool:
    device = row["device"]
    return device is not None and ("cpu" if device == "cpu" else "gpu") in excluded_devices


def load(*files: Path) -> Run:
    """Opens a recording, or the parts of one run.

        run = jm.load("run.joule")
        for row in run.ledger(by="layer").rows:
            print(row.path, row.energy_j, row.low_j, row.high_j)

    It reads nothing yet; each ledger runs `joulemap report`.
    """
    if not files:
        raise TypeError("jm.load takes a recording: jm.load('run.joule')")
    for file in files:
        if not os.path.exists(file) and not os.path.isdir(os.fspath(file) + ".d"):
            raise FileNotFoundError(f"{os.fspath(file)}: no such recording")
    return Run(files)
