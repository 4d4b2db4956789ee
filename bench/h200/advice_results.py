# SPDX-License-Identifier: Apache-2.0
"""The table of the benchmarks that apply the advice of `joulemap advise` (h200/advise.py, advise/cpu.py)."""

from __future__ import annotations


def format_result_cells(result: dict, total_j: float) -> list[str]:
    """Case, findings, expected saving, its range, realised saving, whether it is in range. Sets `in_range`."""
    if "failure" in result:
        return [result["case"], "failed", *[""] * 4]
    rules = (
        ", ".join(f"{finding['rule']} {finding['saves_j'] / total_j:.0%}" for finding in result["findings"]) or "none"
    )
    if "realised" not in result:
        return [result["case"], rules, "", "", "", "yes" if rules == "none" else "no"]
    matching_finding = next(
        (finding for finding in result["findings"] if result["case"].startswith(finding["rule"])), None
    )
    result["in_range"] = (
        matching_finding is not None
        and matching_finding["low_j"] <= result["realised"] * total_j <= matching_finding["high_j"]
    )
    return [result["case"], rules, f"{matching_finding['saves_j'] / total_j:.0%}" if matching_finding else "-",
            f"{matching_finding['low_j'] / total_j:.0%} to {matching_finding['high_j'] / total_j:.0%}"
            if matching_finding else "-",
            f"{result['realised']:.0%}", "yes" if result["in_range"] else "no"]  # fmt: skip
