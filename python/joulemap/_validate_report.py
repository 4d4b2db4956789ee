# SPDX-License-Identifier: Apache-2.0
"""Reports of an interval of a recording that is still being written, and the comparison of blocks as data and as a
table."""

from __future__ import annotations

import glob
import json
import os
import subprocess
import time
from dataclasses import dataclass, field
from typing import Iterable, Optional

from . import _validate_statistics as numbers

# Parts of a recording are written once a second; the delay ensures that they contain the whole interval.
RECORDING_WRITE_DELAY_S = 2.5
MIN_BLOCK_SHARE = 0.05
ATTRIBUTED_COLUMN, PROBED_COLUMN, BY_TIME_COLUMN = "attributed", "probed", "by time"


@dataclass(frozen=True)
class ValidatedBlock:
    """One block, in joules per pass."""

    name: str  # name of the block
    doubled_j: float  # extra energy of a pass that runs the block twice
    half_width_j: Optional[float]  # half width at 90 %; None with a single round
    busy_j: float  # doubled_j without idle energy: comparable with the energy attributed to layers
    share: float  # share of the pass
    attributed_j: Optional[float]  # energy by `joulemap report`; None if it has no row for the block
    low_j: Optional[float]  # lower bound of the 90 % interval of attributed_j
    high_j: Optional[float]  # upper bound of that interval
    error: Optional[float]  # relative error of attributed_j against busy_j
    basis: Optional[str]  # method of the attribution: "regressed", "probed", "time-share" ...
    by_time_j: Optional[float]  # energy by `joulemap report --mode integral`
    by_time_error: Optional[float]  # relative error of by_time_j
    probed_j: Optional[float] = None  # energy by `joulemap report` after probing, if requested
    probed_error: Optional[float] = None  # relative error of probed_j


@dataclass(frozen=True)
class Validated:
    """The result of jm.validate; print() shows it as a table."""

    title: str  # class of the model, and "training" or "inference"
    device: str  # "gpu0", "cpu"
    pass_j: float  # energy of the plain pass, in J
    pass_s: float  # time of the plain pass, in s
    blocks: list = field(default_factory=list)  # a list of ValidatedBlock
    refused: dict = field(default_factory=dict)  # name -> why it could not be run twice
    idle_share: float = 0.0  # share of the pass's energy used while the device was idle, or by other processes
    overlap: bool = False  # true if blocks overlap, so that their energies do not add up
    is_measured: bool = True  # true if a counter measured the energies; estimates cannot resolve blocks
    is_comparable: bool = True  # false if the recording is measured and is_measured is false, or vice versa

    @property
    def sum_of_shares(self) -> float:
        """Sum of the measured shares: 1 if the blocks cover the whole model and energies add up."""
        return sum(block.share for block in self.blocks)

    @property
    def sum_with_rest(self) -> Optional[float]:
        """Sum of the measured shares of the blocks and the attributed share of the rest of the pass; None if a block has
        no attributed energy, or is_comparable is False. It is 1 if energies add up. Above 1, the second run of a block
        costs more than its first, in which kernels of other blocks hide host time; the errors of blocks include that
        difference."""
        attributed_j = [block.attributed_j for block in self.blocks]
        known_attributed_j = [joules for joules in attributed_j if joules is not None]
        if not known_attributed_j or len(known_attributed_j) < len(attributed_j) or not self.is_comparable:
            return None
        return self.sum_of_shares + 1 - sum(known_attributed_j) / self.pass_j

    def rms_error(self, of: str = "error", least_share: float = MIN_BLOCK_SHARE) -> Optional[float]:
        """RMS of "error", "by_time_error" or "probed_error" over blocks of at least `least_share` of the pass, by
        default 5 %; None without any."""
        errors = [getattr(block, of) for block in self.blocks if block.share >= least_share]
        known_errors = [error for error in errors if error is not None]
        return numbers.rms(known_errors) if known_errors else None

    def __str__(self) -> str:
        lines = [f"{self.title}: a pass uses {self.pass_j:.4g} J in {self.pass_s * 1e3:.4g} ms on {self.device}"]
        name_width = max([len("block"), *(len(block.name) for block in self.blocks)])
        error_attributes = {"error": "error", "probed": "probed_error", "by time": "by_time_error"}
        if all(block.probed_error is None for block in self.blocks):
            del error_attributes["probed"]
        header_titles = "  ".join(f"{title:>7}" for title in error_attributes)
        lines.append(f"{'block':{name_width}}  {'run twice':>20}  {'share':>6}  {'attributed':>11}  {header_titles}")
        lines += [_format_block_line(block, name_width, error_attributes.values()) for block in self.blocks]
        lines += [f"{name}: not run twice: {reason}" for name, reason in self.refused.items()]
        if not self.overlap:
            rest_text = "" if self.sum_with_rest is None else f"; with the attributed rest {self.sum_with_rest:.3f}"
            lines.append(f"sum of blocks: {self.sum_of_shares:.3f} of a pass{rest_text}")
        rms_by_title = {title: self.rms_error(error_attribute) for title, error_attribute in error_attributes.items()}
        errors_text = ", ".join(
            f"{title} {rms_error:.1%}" for title, rms_error in rms_by_title.items() if rms_error is not None
        )
        if errors_text:
            lines.append(f"blocks above {MIN_BLOCK_SHARE:.0%} of a pass, root mean square: {errors_text}")
        if self.idle_share > 0.03:
            idle_cause = "by other processes or while idle" if self.device == "cpu" else f"while {self.device} is idle"
            lines.append(f"{self.idle_share:.0%} of a pass is used {idle_cause} and belongs to no block")
        if not self.is_comparable:
            provenances = ("measured", "estimated") if self.is_measured else ("estimated", "measured")
            lines.append(
                f"energy is {provenances[0]} here and {provenances[1]} in the recording, so they are not compared: use the "
                "same sensors (JOULEMAP_SENSORS, JOULEMAP_SYSROOT) for both"
            )
        elif not self.is_measured:
            lines.append("energy is estimated here, so it does not validate blocks: run joulemap doctor")
        return "\n".join(lines)


def _format_block_line(block: ValidatedBlock, name_width: int, error_attributes: Iterable[str]) -> str:
    half_width_text = "" if block.half_width_j is None else f" +- {block.half_width_j:.2g}"
    doubled_text = f"{block.doubled_j:.4g}{half_width_text} J"
    attributed_text = "-" if block.attributed_j is None else f"{block.attributed_j:.4g} J"
    error_values = [getattr(block, error_attribute) for error_attribute in error_attributes]
    error_cells = "  ".join(f"{'-' if value is None else format(value, '+.1%'):>7}" for value in error_values)
    row_text = f"{doubled_text:>20}  {block.share:6.1%}  {attributed_text:>11}  {error_cells}"
    return f"{block.name:{name_width}}  {row_text}  {block.basis or ''}".rstrip()


class LiveRecording:
    """Reads the recording of this process while it is written."""

    def __init__(self) -> None:
        self._recording_folder = os.environ["JOULEMAP_RECORDING"]
        self._joulemap_path = os.path.join(os.path.dirname(os.path.abspath(__file__)), "bin", "joulemap")

    def report_layers(self, interval: dict, *arguments: str) -> dict:
        """The report of an interval by layer."""
        time.sleep(max(0.0, interval["end_ns"] * 1e-9 + RECORDING_WRITE_DELAY_S - time.monotonic()))
        recording_start_ns = self._run_report("--by", "domain")["start_monotonic_ns"]
        begin_s, end_s = ((interval[edge_key] - recording_start_ns) * 1e-9 for edge_key in ("begin_ns", "end_ns"))
        return self._run_report("--by", "layer", "--time", f"{begin_s:.6f},{end_s:.6f}", *arguments)

    def _run_report(self, *arguments: str) -> dict:
        from ._library import JoulemapError

        part_files = sorted(glob.glob(os.path.join(glob.escape(self._recording_folder), "*.joule")))
        recorder_variables = ("JOULEMAP_RECORDING", "PYTHONPATH", "CUDA_INJECTION64_PATH", "NVTX_INJECTION64_PATH")
        environment = {name: value for name, value in os.environ.items() if not name.startswith(recorder_variables)}
        command = [self._joulemap_path, "report", *part_files, "--json", *arguments]
        process = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
        if process.returncode != 0:
            raise JoulemapError(f"joulemap report of the recording so far: {process.stderr.strip()}")
        report: dict = json.loads(process.stdout)
        return report


def compare_with_recording(
    title: str,
    device: str,
    measured_blocks: numbers.MeasuredBlocks,
    intervals: dict,
    groups: dict,
    refused: dict,
    is_measured: bool,
) -> Validated:
    """Compares the measured blocks with the report of the recording so far, for the intervals `plain` and, if present,
    `probed`."""
    recording = LiveRecording()
    plain_interval = numbers.make_reported_interval(recording.report_layers(intervals["plain"]), groups, device)
    interval_by_column = {ATTRIBUTED_COLUMN: plain_interval}
    interval_by_column[BY_TIME_COLUMN] = numbers.make_reported_interval(
        recording.report_layers(intervals["plain"], "--mode", "integral"), groups, device
    )
    if "probed" in intervals:
        interval_by_column[PROBED_COLUMN] = numbers.make_reported_interval(
            recording.report_layers(intervals["probed"]), groups, device, plain_interval.idle_share
        )
    is_comparable = plain_interval.is_measured == is_measured
    rows = numbers.compare_blocks(
        measured_blocks, plain_interval, intervals["plain"]["passes"], interval_by_column, is_comparable
    )
    blocks = [_make_validated_block(row) for row in sorted(rows, key=lambda row: -row.doubled_j)]
    has_overlap = numbers.has_shared_modules({row.block: groups[row.block] for row in rows})
    return Validated(
        title,
        device,
        measured_blocks.pass_j,
        measured_blocks.pass_s,
        blocks,
        refused,
        plain_interval.idle_share,
        has_overlap,
        is_measured,
        is_comparable,
    )


def _make_validated_block(row: numbers.BlockComparison) -> ValidatedBlock:
    attributed_energy, time_split_energy, probed_energy = (
        row.attributed.get(column) for column in (ATTRIBUTED_COLUMN, BY_TIME_COLUMN, PROBED_COLUMN)
    )
    attributed_fields = (
        (
            attributed_energy.joules,
            attributed_energy.low_j,
            attributed_energy.high_j,
            attributed_energy.error,
            attributed_energy.basis,
        )
        if attributed_energy
        else (None,) * 5
    )
    by_time_fields = (time_split_energy.joules, time_split_energy.error) if time_split_energy else (None, None)
    return ValidatedBlock(
        *row[:5],
        *attributed_fields,
        *by_time_fields,
        *((probed_energy.joules, probed_energy.error) if probed_energy else (None, None)),
    )
