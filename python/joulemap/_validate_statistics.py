# SPDX-License-Identifier: Apache-2.0
"""Computes the energy of blocks from loops of passes, and compares it with a report. This file depends neither on
PyTorch nor on sensors: bench/h200/doubling.py imports it without the rest of the package."""

from __future__ import annotations

import math
import statistics
from typing import NamedTuple, Optional, Sequence

# 95th percentile of Student's t by degrees of freedom: a two-sided interval covers 90 %.
T_QUANTILES_95 = (
    6.314, 2.920, 2.353, 2.132, 2.015, 1.943, 1.895, 1.860, 1.833, 1.812, 1.796, 1.782, 1.771, 1.761, 1.753,
    1.746, 1.740, 1.734, 1.729, 1.725, 1.721, 1.717, 1.714, 1.711, 1.708, 1.706, 1.703, 1.701, 1.699, 1.697,
)  # fmt: skip
T_QUANTILE_95_AT_INFINITY = 1.645


class PassLoop(NamedTuple):
    """Consecutive passes; the device is idle at both ends."""

    block: Optional[str]  # block that runs twice in each pass; None: the plain pass
    is_control: bool  # the block runs once, with the overhead of preparing a second call
    round: int
    passes: int
    begin_ns: int
    end_ns: int
    joules: float

    @property
    def pass_j(self) -> float:
        return self.joules / self.passes

    @property
    def pass_s(self) -> float:
        return (self.end_ns - self.begin_ns) * 1e-9 / self.passes

    @property
    def midpoint_ns(self) -> float:
        return (self.begin_ns + self.end_ns) / 2


class ExtraBlockEnergy(NamedTuple):
    """Extra energy and time of a pass with a block run twice."""

    block: str
    joules: float
    half_width_j: Optional[float]  # half width at 90 %; None with a single round
    seconds: float
    round_energies_j: list


def t_quantile_95(degrees_of_freedom: int) -> float:
    return (
        T_QUANTILES_95[degrees_of_freedom - 1]
        if 0 < degrees_of_freedom <= len(T_QUANTILES_95)
        else T_QUANTILE_95_AT_INFINITY
    )


def _interpolate_plain_pass(plain_loops: Sequence, loop: PassLoop) -> tuple:
    """Joules and seconds of a plain pass at the time of the loop, interpolated linearly between the plain loops before
    and after it."""
    loops_of_round = [plain_loop for plain_loop in plain_loops if plain_loop.round == loop.round]
    loop_before = max(
        (plain_loop for plain_loop in loops_of_round if plain_loop.end_ns <= loop.begin_ns),
        key=lambda plain_loop: plain_loop.end_ns,
        default=None,
    )
    loop_after = min(
        (plain_loop for plain_loop in loops_of_round if plain_loop.begin_ns >= loop.end_ns),
        key=lambda plain_loop: plain_loop.begin_ns,
        default=None,
    )
    loop_before, loop_after = loop_before or loop_after, loop_after or loop_before
    if loop_before is None or loop_after is None:
        raise ValueError(f"round {loop.round} has no plain loop")
    gap_ns = loop_after.midpoint_ns - loop_before.midpoint_ns
    time_share = (loop.midpoint_ns - loop_before.midpoint_ns) / gap_ns if gap_ns else 0.0
    interpolate = lambda first_value, last_value: first_value + time_share * (last_value - first_value)  # noqa: E731
    return interpolate(loop_before.pass_j, loop_after.pass_j), interpolate(loop_before.pass_s, loop_after.pass_s)


def compute_extra_energies(loops: Sequence) -> list:
    """The extra energy of each block. The spread between rounds is pooled over all blocks: three rounds of one block
    estimate it poorly."""
    plain_loops = [loop for loop in loops if loop.block is None]
    extras_by_block: dict = {}  # block -> is control -> [(joules, seconds)]
    for loop in loops:
        if loop.block is not None:
            plain_j, plain_s = _interpolate_plain_pass(plain_loops, loop)
            extras_by_control = extras_by_block.setdefault(loop.block, {True: [], False: []})
            extras_by_control[loop.is_control].append((loop.pass_j - plain_j, loop.pass_s - plain_s))
    rounds_by_block = {
        block: _subtract_control(extras_by_control[False], extras_by_control[True])
        for block, extras_by_control in extras_by_block.items()
    }
    spread_j, degrees_of_freedom = _pooled_standard_deviation(
        [[joules for joules, _ in rounds] for rounds in rounds_by_block.values()]
    )
    extra_energies = []
    for block, rounds in rounds_by_block.items():
        joules = [round_j for round_j, _ in rounds]
        half_width_j = (
            t_quantile_95(degrees_of_freedom) * spread_j / math.sqrt(len(joules)) if degrees_of_freedom > 0 else None
        )
        extra_energies.append(
            ExtraBlockEnergy(
                block,
                statistics.fmean(joules),
                half_width_j,
                statistics.fmean(round_s for _, round_s in rounds),
                joules,
            )
        )
    return extra_energies


def _subtract_control(doubled_extras: list, control_extras: list) -> list:
    if not control_extras:
        return doubled_extras
    return [
        (doubled_extra[0] - control_extra[0], doubled_extra[1] - control_extra[1])
        for doubled_extra, control_extra in zip(doubled_extras, control_extras)
    ]


def _pooled_standard_deviation(groups: Sequence) -> tuple:
    """Pooled standard deviation within groups, and its degrees of freedom."""
    degrees_of_freedom = sum(len(group) - 1 for group in groups)
    squared_sum = sum((value - statistics.fmean(group)) ** 2 for group in groups for value in group)
    return (math.sqrt(squared_sum / degrees_of_freedom) if degrees_of_freedom > 0 else 0.0), degrees_of_freedom


def mean_plain_pass(loops: Sequence) -> tuple:
    """Mean joules and seconds of the plain pass over all rounds."""
    plain_loops = [loop for loop in loops if loop.block is None]
    return statistics.fmean(loop.pass_j for loop in plain_loops), statistics.fmean(loop.pass_s for loop in plain_loops)


class MeasuredBlocks(NamedTuple):
    """The plain pass, and the extra energy of each block."""

    pass_j: float
    pass_s: float
    extra_energies: list
    is_limited_by_host: bool = False


# (block, is control) -> seconds of single passes on the host, one for each cycle.
HostTimes = dict

# Relative standard deviation of the times of plain loops above which the host limits the passes. Where the GPU limits
# them, the times agree within 0.1 %.
MAX_HOST_TIME_RELATIVE_STD = 0.01
TRIMMED_SHARE = 0.25


def is_limited_by_host(loops: Sequence) -> bool:
    times_s = [loop.pass_s for loop in loops if loop.block is None]
    return len(times_s) > 1 and statistics.stdev(times_s) > MAX_HOST_TIME_RELATIVE_STD * statistics.fmean(times_s)


def compute_block_energies(loops: Sequence, host_times: Optional[HostTimes]) -> MeasuredBlocks:
    """Energy of the blocks: from the loops alone or, where the host limits the passes, corrected to the same speed of
    the host for all variants."""
    if host_times is None or any(len(times_s) < 2 for times_s in host_times.values()):
        return MeasuredBlocks(*mean_plain_pass(loops), compute_extra_energies(loops))
    return _correct_to_equal_host_speed(loops, host_times)


def _correct_to_equal_host_speed(loops: Sequence, host_times: HostTimes) -> MeasuredBlocks:
    """Energy of the blocks at one speed of the host. If the host is slower, the same work takes longer and more idle
    energy: the energy of a pass is linear in its time. The slope, in W, comes from loops of the same variant; the times
    come from single passes of all variants in turn."""
    loops_by_variant: dict = {}
    for loop in loops:
        loops_by_variant.setdefault((loop.block, loop.is_control), []).append(loop)
    slope_w = _pooled_slope_w(list(loops_by_variant.values()))
    time_independent_j = {  # energy of each loop's pass without the part that grows with its time
        key: [loop.pass_j - slope_w * loop.pass_s for loop in loops_of_variant]
        for key, loops_of_variant in loops_by_variant.items()
    }
    spread_j, degrees_of_freedom = _pooled_standard_deviation(list(time_independent_j.values()))
    plain_variant = (None, False)

    def extra_above_plain(variant: tuple) -> tuple:
        """Joules, their standard error, and seconds above the plain pass."""
        differences = [
            variant_s - plain_s for variant_s, plain_s in zip(host_times[variant], host_times[plain_variant])
        ]
        extra_s, error_s = trimmed_mean_and_error(differences)
        extra_j = (
            statistics.fmean(time_independent_j[variant])
            - statistics.fmean(time_independent_j[plain_variant])
            + slope_w * extra_s
        )
        error_j = spread_j * math.sqrt(
            1 / len(time_independent_j[variant]) + 1 / len(time_independent_j[plain_variant])
        )
        return extra_j, math.hypot(error_j, slope_w * error_s), extra_s

    extra_energies = []
    for block in [key[0] for key in loops_by_variant if key[0] is not None and not key[1]]:
        joules, error_j, seconds = extra_above_plain((block, False))
        if (block, True) in loops_by_variant:
            control_j, control_error_j, control_s = extra_above_plain((block, True))
            joules, error_j, seconds = joules - control_j, math.hypot(error_j, control_error_j), seconds - control_s
        half_width_j = t_quantile_95(degrees_of_freedom) * error_j if degrees_of_freedom > 0 else None
        round_energies_j = [
            joules + loop_energy_j - statistics.fmean(time_independent_j[block, False])
            for loop_energy_j in time_independent_j[block, False]
        ]
        extra_energies.append(ExtraBlockEnergy(block, joules, half_width_j, seconds, round_energies_j))
    pass_s, _ = trimmed_mean_and_error(host_times[plain_variant])
    return MeasuredBlocks(
        statistics.fmean(time_independent_j[plain_variant]) + slope_w * pass_s, pass_s, extra_energies, True
    )


def _pooled_slope_w(groups: Sequence) -> float:
    """Slope of the energy of a pass against its time, in W, pooled within groups; limited to 0 and the mean power. The
    mean power if all times are equal."""
    product_sum = squared_sum = 0.0
    for group in groups:
        mean_s, mean_j = (
            statistics.fmean(loop.pass_s for loop in group),
            statistics.fmean(loop.pass_j for loop in group),
        )
        product_sum += sum((loop.pass_s - mean_s) * (loop.pass_j - mean_j) for loop in group)
        squared_sum += sum((loop.pass_s - mean_s) ** 2 for loop in group)
    loops = [loop for group in groups for loop in group]
    mean_w = sum(loop.joules for loop in loops) / sum(loop.pass_s * loop.passes for loop in loops)
    return min(max(product_sum / squared_sum, 0.0), mean_w) if squared_sum > 0 else mean_w


def trimmed_mean_and_error(values: Sequence) -> tuple:
    """The mean without the smallest and largest quarter, and its standard error: hosts pause at times."""
    sorted_values = sorted(values)
    trimmed_count = int(TRIMMED_SHARE * len(sorted_values))
    central_values = sorted_values[trimmed_count : len(sorted_values) - trimmed_count]
    winsorized_values = [min(max(value, central_values[0]), central_values[-1]) for value in sorted_values]
    standard_error = (
        statistics.stdev(winsorized_values) / ((1 - 2 * TRIMMED_SHARE) * math.sqrt(len(sorted_values)))
        if len(sorted_values) > 1
        else 0.0
    )
    return statistics.fmean(central_values), standard_error


def has_shared_modules(groups: dict) -> bool:
    """Whether two blocks share a module, given the paths of each: then their energies do not add up."""
    module_paths = [module_path for group in groups.values() for module_path in group]
    return len(set(module_paths)) < len(module_paths) or any(
        module_path.startswith(other_path + ".") for module_path in module_paths for other_path in module_paths
    )


class AttributedEnergyShare(NamedTuple):
    """The energy that a report attributes to a block, as a share of the device's energy in plain passes."""

    share: float
    low: float
    high: float
    busy_s: float
    basis: str
    waiting_share: tuple = (0.0, 0.0, 0.0)  # the part of share, low and high while the idle device waited


class ReportedInterval(NamedTuple):
    """The report of an interval of plain passes."""

    blocks: dict  # name -> AttributedEnergyShare
    total_j: float
    idle_share: float  # share of total_j used while idle; on CPUs also by other processes
    idle_w: Optional[float]  # mean idle power, W
    includes_waiting: bool = False  # blocks contain the energy of the idle GPU that waited for them
    active_share: float = 1.0  # share of total_j used while kernels ran
    is_measured: bool = True  # false: the energies are estimates


def device_domains(report: dict, device: str) -> list:
    """Domains of the device: the GPU's own one; for CPUs, all other counted ones, those measured if there are any."""
    domains = [domain for domain in report["domains"] if domain["counted"] and domain["measured_j"] is not None]
    if device != "cpu":
        return [domain for domain in domains if domain["name"] == device]
    domains = [domain for domain in domains if not domain["name"].startswith("gpu")]
    return [domain for domain in domains if domain["provenance"] == "measured"] or domains


def make_reported_interval(
    report: dict, groups: dict, device: str, idle_share: Optional[float] = None
) -> ReportedInterval:
    """From `report --by layer --json` of plain passes or, if `idle_share` is given, of plain passes and probing."""
    rows = [row for row in report["rows"] if row["device"] == device and row["energy_j"] is not None]
    rows = [row for row in rows if row["path"][:1] not in (["probe"], ["background"])]
    includes_waiting = any(row.get("waiting_j") for row in rows)
    busy_j = sum(row["energy_j"] + (row.get("waiting_j") or 0.0) for row in rows)
    domains = device_domains(report, device)
    domains_j = sum(domain["measured_j"] for domain in domains)
    total_j = domains_j if idle_share is None else busy_j / (1 - idle_share)
    if total_j <= 0 or busy_j <= 0:
        raise ValueError(f"the recording contains no energy of {device}")
    idle_w = None
    if idle_share is None:
        idle_s = report["elapsed_s"] - sum(row["time_s"] for row in rows)
        idle_share = min(max(0.0, 1 - busy_j / total_j), 0.99)
        idle_w = idle_share * total_j / idle_s if device != "cpu" and idle_s > 0 else None
    blocks = {}
    for name, paths in groups.items():
        block_rows = [row for row in rows if any(is_layer_within(row["path"][-1], path) for path in paths)]
        if block_rows:
            active_shares, waiting_shares = (
                [sum(row.get(report_key) or 0.0 for row in block_rows) / total_j for report_key in report_keys]
                for report_keys in (("energy_j", "low_j", "high_j"), ("waiting_j", "waiting_low_j", "waiting_high_j"))
            )
            share, low, high = map(sum, zip(active_shares, waiting_shares))
            basis = max(block_rows, key=lambda row: row["energy_j"])["basis"]
            blocks[name] = AttributedEnergyShare(
                share, low, high, sum(row["time_s"] for row in block_rows), basis, tuple(waiting_shares)
            )
    active_share = sum(row["energy_j"] for row in rows) / total_j
    is_measured = any(domain["provenance"] == "measured" for domain in domains)
    return ReportedInterval(blocks, total_j, idle_share, idle_w, includes_waiting, active_share, is_measured)


def is_layer_within(layer: str, path: str) -> bool:
    return layer == path or layer.startswith(path + ".")


def busy_time_energy_j(extra_energy: ExtraBlockEnergy, busy_s: float, plain_interval: ReportedInterval) -> float:
    """The part of a block's extra energy used while the device works, because a report lists idle energy separately. On
    CPUs it is the part used by the program: other processes use the same share as in a plain pass. All of it where the
    report charges idle energy to the layers that the GPU waited for."""
    if plain_interval.includes_waiting:
        return extra_energy.joules
    if plain_interval.idle_w is None:
        return extra_energy.joules * (1 - plain_interval.idle_share)
    return extra_energy.joules - max(0.0, extra_energy.seconds - busy_s) * plain_interval.idle_w


def rms(values: Sequence) -> float:
    return math.sqrt(statistics.fmean(value * value for value in values)) if values else math.nan


class AttributedEnergy(NamedTuple):
    """The energy that one attribution method gives a block in a pass."""

    joules: float
    low_j: float
    high_j: float
    error: Optional[float]  # relative error against busy_j; None if busy_j <= 0
    basis: str


class BlockComparison(NamedTuple):
    """A block: the energy of its second call, and the attributed energy of the first."""

    block: str
    doubled_j: float
    half_width_j: Optional[float]
    busy_j: float  # part of doubled_j used while the device works: comparable with a report
    share: float  # share of the pass
    attributed: dict  # column -> AttributedEnergy


def _joules_per_pass(
    share: AttributedEnergyShare, interval: ReportedInterval, passes: int, measured_blocks: MeasuredBlocks
) -> tuple:
    """Joules per pass, low and high, of a block, at the speed at which the blocks were measured.

    Shares count, not joules: the recorded passes ran at another time, and the edges of their interval are less certain
    than the shares within it. Where the host limits the passes, the energy of kernels stays and that of waiting changes
    with its speed.
    """
    if not measured_blocks.is_limited_by_host or interval.active_share >= 1:
        return tuple(bound_share * measured_blocks.pass_j for bound_share in share[:3])
    recorded_j = interval.total_j / passes
    active_j = interval.active_share * recorded_j
    waiting_energy_ratio = max(measured_blocks.pass_j - active_j, 0.0) / (recorded_j - active_j)
    share_pairs = zip(share[:3], share.waiting_share)
    return tuple(
        recorded_j * (bound_share - waiting_share + waiting_energy_ratio * waiting_share)
        for bound_share, waiting_share in share_pairs
    )


def compare_blocks(
    measured_blocks: MeasuredBlocks,
    plain_interval: ReportedInterval,
    passes: int,
    interval_by_column: dict,
    are_comparable: bool = True,
) -> list:
    """`plain_interval`: the recorded passes. `interval_by_column`: method name -> interval as attributed by that
    method. `are_comparable`: False if either energies are estimates, and the others measured: there are no errors."""
    rows = []
    for extra_energy in measured_blocks.extra_energies:
        plain_share = plain_interval.blocks.get(extra_energy.block)
        busy_j = busy_time_energy_j(extra_energy, plain_share.busy_s / passes if plain_share else 0.0, plain_interval)
        attributed = {}
        for column, interval in interval_by_column.items():
            share = interval.blocks.get(extra_energy.block)
            if share is not None:
                joules, low_j, high_j = _joules_per_pass(share, interval, passes, measured_blocks)
                attributed[column] = AttributedEnergy(
                    joules, low_j, high_j, joules / busy_j - 1 if busy_j > 0 and are_comparable else None, share.basis
                )
        rows.append(
            BlockComparison(
                extra_energy.block,
                extra_energy.joules,
                extra_energy.half_width_j,
                busy_j,
                extra_energy.joules / measured_blocks.pass_j,
                attributed,
            )
        )
    return rows


def attribution_errors(rows: Sequence, column: str, least_share: float) -> list:
    """Errors of the blocks above `least_share` of the pass."""
    attributed_energies = [
        row.attributed[column] for row in rows if row.share >= least_share and column in row.attributed
    ]
    return [attributed_energy.error for attributed_energy in attributed_energies if attributed_energy.error is not None]
