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


def t_quantile_95(degrees: int) -> float:
    return T_QUANTILES_95[degrees - 1] if 0 < degrees <= len(T_QUANTILES_95) else T_QUANTILE_95_AT_INFINITY


def _interpolate_plain_pass(plain: Sequence, loop: PassLoop) -> tuple:
    """Joules and seconds of a plain pass at the time of the loop, interpolated linearly between the plain loops before
    and after it."""
    loops_of_round = [one for one in plain if one.round == loop.round]
    before = max(
        (one for one in loops_of_round if one.end_ns <= loop.begin_ns), key=lambda one: one.end_ns, default=None
    )
    after = min(
        (one for one in loops_of_round if one.begin_ns >= loop.end_ns), key=lambda one: one.begin_ns, default=None
    )
    before, after = before or after, after or before
    if before is None or after is None:
        raise ValueError(f"round {loop.round} has no plain loop")
    length_ns = after.midpoint_ns - before.midpoint_ns
    share = (loop.midpoint_ns - before.midpoint_ns) / length_ns if length_ns else 0.0
    interpolate = lambda one, other: one + share * (other - one)  # noqa: E731
    return interpolate(before.pass_j, after.pass_j), interpolate(before.pass_s, after.pass_s)


def compute_extra_energies(loops: Sequence) -> list:
    """The extra energy of each block. The spread between rounds is pooled over all blocks: three rounds of one block
    estimate it poorly."""
    plain = [loop for loop in loops if loop.block is None]
    above: dict = {}  # block -> is control -> [(joules, seconds)]
    for loop in loops:
        if loop.block is not None:
            plain_j, plain_s = _interpolate_plain_pass(plain, loop)
            kinds = above.setdefault(loop.block, {True: [], False: []})
            kinds[loop.is_control].append((loop.pass_j - plain_j, loop.pass_s - plain_s))
    found = {block: _subtract_control(kinds[False], kinds[True]) for block, kinds in above.items()}
    spread_j, degrees = _pooled_standard_deviation([[joules for joules, _ in rounds] for rounds in found.values()])
    extras_of_blocks = []
    for block, rounds in found.items():
        joules = [round_j for round_j, _ in rounds]
        half_j = t_quantile_95(degrees) * spread_j / math.sqrt(len(joules)) if degrees > 0 else None
        extras_of_blocks.append(
            ExtraBlockEnergy(block, statistics.fmean(joules), half_j, statistics.fmean(s for _, s in rounds), joules)
        )
    return extras_of_blocks


def _subtract_control(doubled: list, control: list) -> list:
    if not control:
        return doubled
    return [(one[0] - other[0], one[1] - other[1]) for one, other in zip(doubled, control)]


def _pooled_standard_deviation(groups: Sequence) -> tuple:
    """Pooled standard deviation within groups, and its degrees of freedom."""
    degrees = sum(len(group) - 1 for group in groups)
    squares = sum((value - statistics.fmean(group)) ** 2 for group in groups for value in group)
    return (math.sqrt(squares / degrees) if degrees > 0 else 0.0), degrees


def mean_plain_pass(loops: Sequence) -> tuple:
    """Mean joules and seconds of the plain pass over all rounds."""
    plain = [loop for loop in loops if loop.block is None]
    return statistics.fmean(loop.pass_j for loop in plain), statistics.fmean(loop.pass_s for loop in plain)


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
        key: [loop.pass_j - slope_w * loop.pass_s for loop in same] for key, same in loops_by_variant.items()
    }
    spread_j, degrees = _pooled_standard_deviation(list(time_independent_j.values()))
    plain = (None, False)

    def extra(key: tuple) -> tuple:
        """Joules, their standard error, and seconds above the plain pass."""
        differences = [one - other for one, other in zip(host_times[key], host_times[plain])]
        extra_s, error_s = trimmed_mean_and_error(differences)
        extra_j = (
            statistics.fmean(time_independent_j[key]) - statistics.fmean(time_independent_j[plain]) + slope_w * extra_s
        )
        error_j = spread_j * math.sqrt(1 / len(time_independent_j[key]) + 1 / len(time_independent_j[plain]))
        return extra_j, math.hypot(error_j, slope_w * error_s), extra_s

    found = []
    for block in [key[0] for key in loops_by_variant if key[0] is not None and not key[1]]:
        joules, error_j, seconds = extra((block, False))
        if (block, True) in loops_by_variant:
            control_j, control_error_j, control_s = extra((block, True))
            joules, error_j, seconds = joules - control_j, math.hypot(error_j, control_error_j), seconds - control_s
        half_j = t_quantile_95(degrees) * error_j if degrees > 0 else None
        round_energies_j = [
            joules + one - statistics.fmean(time_independent_j[block, False])
            for one in time_independent_j[block, False]
        ]
        found.append(ExtraBlockEnergy(block, joules, half_j, seconds, round_energies_j))
    pass_s, _ = trimmed_mean_and_error(host_times[plain])
    return MeasuredBlocks(statistics.fmean(time_independent_j[plain]) + slope_w * pass_s, pass_s, found, True)


def _pooled_slope_w(groups: Sequence) -> float:
    """Slope of the energy of a pass against its time, in W, pooled within groups; limited to 0 and the mean power. The
    mean power if all times are equal."""
    products = squares = 0.0
    for group in groups:
        mean_s, mean_j = (
            statistics.fmean(loop.pass_s for loop in group),
            statistics.fmean(loop.pass_j for loop in group),
        )
        products += sum((loop.pass_s - mean_s) * (loop.pass_j - mean_j) for loop in group)
        squares += sum((loop.pass_s - mean_s) ** 2 for loop in group)
    loops = [loop for group in groups for loop in group]
    mean_w = sum(loop.joules for loop in loops) / sum(loop.pass_s * loop.passes for loop in loops)
    return min(max(products / squares, 0.0), mean_w) if squares > 0 else mean_w


def trimmed_mean_and_error(values: Sequence) -> tuple:
    """The mean without the smallest and largest quarter, and its standard error: hosts pause at times."""
    ordered = sorted(values)
    cut = int(TRIMMED_SHARE * len(ordered))
    kept = ordered[cut : len(ordered) - cut]
    winsorized = [min(max(value, kept[0]), kept[-1]) for value in ordered]
    error = (
        statistics.stdev(winsorized) / ((1 - 2 * TRIMMED_SHARE) * math.sqrt(len(ordered))) if len(ordered) > 1 else 0.0
    )
    return statistics.fmean(kept), error


def has_shared_modules(groups: dict) -> bool:
    """Whether two blocks share a module, given the paths of each: then their energies do not add up."""
    paths = [path for group in groups.values() for path in group]
    return len(set(paths)) < len(paths) or any(
        path.startswith(other_path + ".") for path in paths for other_path in paths
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


def device_total_j(report: dict, device: str) -> float:
    """Energy of the device: the GPU's own domain; for CPUs, all other counted domains."""
    domains = [domain for domain in report["domains"] if domain["counted"] and domain["measured_j"] is not None]
    if device != "cpu":
        return sum(domain["measured_j"] for domain in domains if domain["name"] == device)
    domains = [domain for domain in domains if not domain["name"].startswith("gpu")]
    measured = [domain for domain in domains if domain["provenance"] == "measured"]
    return sum(domain["measured_j"] for domain in measured or domains)


def make_reported_interval(
    report: dict, groups: dict, device: str, idle_share: Optional[float] = None
) -> ReportedInterval:
    """From `report --by layer --json` of plain passes or, if `idle_share` is given, of plain passes and probing."""
    rows = [row for row in report["rows"] if row["device"] == device and row["energy_j"] is not None]
    rows = [row for row in rows if row["path"][:1] not in (["probe"], ["background"])]
    includes_waiting = any(row.get("waiting_j") for row in rows)
    busy_j = sum(row["energy_j"] + (row.get("waiting_j") or 0.0) for row in rows)
    total_j = device_total_j(report, device) if idle_share is None else busy_j / (1 - idle_share)
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
            active, waiting = (
                [sum(row.get(key) or 0.0 for row in block_rows) / total_j for key in keys]
                for keys in (("energy_j", "low_j", "high_j"), ("waiting_j", "waiting_low_j", "waiting_high_j"))
            )
            share, low, high = map(sum, zip(active, waiting))
            basis = max(block_rows, key=lambda row: row["energy_j"])["basis"]
            blocks[name] = AttributedEnergyShare(
                share, low, high, sum(row["time_s"] for row in block_rows), basis, tuple(waiting)
            )
    active_share = sum(row["energy_j"] for row in rows) / total_j
    return ReportedInterval(blocks, total_j, idle_share, idle_w, includes_waiting, active_share)


def is_layer_within(layer: str, path: str) -> bool:
    return layer == path or layer.startswith(path + ".")


def busy_time_energy_j(extra: ExtraBlockEnergy, busy_s: float, plain: ReportedInterval) -> float:
    """The part of a block's extra energy used while the device works, because a report lists idle energy separately. On
    CPUs it is the part used by the program: other processes use the same share as in a plain pass. All of it where the
    report charges idle energy to the layers that the GPU waited for."""
    if plain.includes_waiting:
        return extra.joules
    if plain.idle_w is None:
        return extra.joules * (1 - plain.idle_share)
    return extra.joules - max(0.0, extra.seconds - busy_s) * plain.idle_w


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
    share: AttributedEnergyShare, interval: ReportedInterval, passes: int, found: MeasuredBlocks
) -> tuple:
    """Joules per pass, low and high, of a block, at the speed at which the blocks were measured.

    Shares count, not joules: the recorded passes ran at another time, and the edges of their interval are less certain
    than the shares within it. Where the host limits the passes, the energy of kernels stays and that of waiting changes
    with its speed.
    """
    if not found.is_limited_by_host or interval.active_share >= 1:
        return tuple(part * found.pass_j for part in share[:3])
    recorded_j = interval.total_j / passes
    active_j = interval.active_share * recorded_j
    waiting_energy_ratio = max(found.pass_j - active_j, 0.0) / (recorded_j - active_j)
    parts = zip(share[:3], share.waiting_share)
    return tuple(recorded_j * (part - waiting + waiting_energy_ratio * waiting) for part, waiting in parts)


def compare_blocks(found: MeasuredBlocks, plain: ReportedInterval, passes: int, columns: dict) -> list:
    """`plain`: the recorded passes. `columns`: method name -> interval as attributed by that method."""
    rows = []
    for extra in found.extra_energies:
        known = plain.blocks.get(extra.block)
        busy_j = busy_time_energy_j(extra, known.busy_s / passes if known else 0.0, plain)
        attributed = {}
        for name, interval in columns.items():
            share = interval.blocks.get(extra.block)
            if share is not None:
                joules, low_j, high_j = _joules_per_pass(share, interval, passes, found)
                attributed[name] = AttributedEnergy(
                    joules, low_j, high_j, joules / busy_j - 1 if busy_j > 0 else None, share.basis
                )
        rows.append(
            BlockComparison(
                extra.block, extra.joules, extra.half_width_j, busy_j, extra.joules / found.pass_j, attributed
            )
        )
    return rows


def attribution_errors(rows: Sequence, column: str, least_share: float) -> list:
    """Errors of the blocks above `least_share` of the pass."""
    attributed = [row.attributed[column] for row in rows if row.share >= least_share and column in row.attributed]
    return [entry.error for entry in attributed if entry.error is not None]
