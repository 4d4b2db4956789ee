#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What scipy says of tests/data/statistics/inputs.json, into tests/data/statistics/scipy.json. How to run: see inputs.py."""

from __future__ import annotations

import json
import math

import numpy as np
import scikit_posthocs
import scipy
from inputs import FOLDER
from scipy import stats

ORACLE = f"scipy {scipy.__version__}"
found: list[dict] = []


def add(case: dict, test: str, **expected: object) -> None:
    numbers = {name: value.tolist() if isinstance(value, np.ndarray) else float(value) for name, value in expected.items()}
    found.append({"id": case["id"], "test": test, "oracle": ORACLE, **numbers})


def has_ties(values: list[float]) -> bool:
    return len(set(values)) < len(values)


def add_paired_goldens(case: dict) -> None:
    first, second = np.array(case["first"], float), np.array(case["second"], float)
    differences = first - second
    nonzero = differences[differences != 0]
    if len(nonzero) == len(differences) and not has_ties(abs(differences).tolist()) and len(nonzero) <= 200:
        exact = stats.wilcoxon(first, second, method="exact")
        add(case, "signed_rank_drop", p=exact.pvalue)
        add(case, "signed_rank_pratt", p=exact.pvalue)
    elif len(nonzero) <= 13:
        # All signs, zeros and ties as they are.
        for zeros, test in (("wilcox", "signed_rank_drop"), ("pratt", "signed_rank_pratt")):
            every = stats.PermutationMethod(n_resamples=np.inf)
            add(case, test, p=stats.wilcoxon(first, second, zero_method=zeros, method=every).pvalue)
    elif len(nonzero) > 200:
        plain = stats.wilcoxon(first, second, zero_method="wilcox", correction=True, method="asymptotic")
        add(case, "signed_rank_drop", p=plain.pvalue)
    if len(first) >= 3 and np.ptp(first) > 0 and np.ptp(second) > 0:
        of_correlation(case, first, second)


def of_correlation(case: dict, first: np.ndarray, second: np.ndarray) -> None:
    tied = has_ties(first.tolist()) or has_ties(second.tolist())
    rho = stats.spearmanr(first, second)
    # Up to 9 pairs ours is exact; and Student's t has no meaning at a correlation of 1.
    has_p_value = len(first) > 9 and abs(rho.statistic) < 0.9999
    add(case, "spearman", estimate=rho.statistic, **({"p": rho.pvalue} if has_p_value else {}))
    if not tied and len(first) <= 50:
        tau = stats.kendalltau(first, second, method="exact")
    else:
        tau = stats.kendalltau(first, second, method="asymptotic")
    add(case, "kendall", estimate=tau.statistic, **({"p": tau.pvalue} if not tied or len(first) > 8 else {}))
    add(case, "theil_sen", estimate=stats.theilslopes(first).slope)


def of_two(case: dict) -> None:
    first, second = case["first"], case["second"]
    m, n = len(first), len(second)
    exact = m * n * min(m, n) * (m + n) <= 2e7
    if exact and not has_ties(first + second):
        test = stats.mannwhitneyu(first, second, method="exact")
        add(case, "rank_sum", statistic=test.statistic, p=test.pvalue)
    elif not exact:
        test = stats.mannwhitneyu(first, second, method="asymptotic", use_continuity=True)
        add(case, "rank_sum", statistic=test.statistic, p=test.pvalue)
    elif math.comb(m + n, m) <= 50_000:
        # Not doubled, but both tails by their distance from the mean, as coin has it.
        def far(x: np.ndarray, y: np.ndarray, axis: int = -1) -> np.ndarray:
            u = stats.mannwhitneyu(x, y, axis=axis, method="asymptotic").statistic
            return abs(u - m * n / 2)

        every = stats.permutation_test((first, second), far, alternative="greater", n_resamples=np.inf, vectorized=True)
        add(case, "rank_sum", p=every.pvalue)


def add_pairs(case: dict, test: str, table: object) -> None:
    """The upper half of a table of all against all."""
    all_pairs = table.to_numpy()
    add(case, test, values=all_pairs[np.triu_indices(len(all_pairs), 1)])
    found[-1]["oracle"] = f"scikit-posthocs {scikit_posthocs.__version__}"


def lists_of(case: dict) -> list[np.ndarray]:
    return np.split(np.array(case["values"], float), np.cumsum(case["sizes"])[:-1])


def of_blocks(case: dict) -> None:
    test = stats.friedmanchisquare(*np.array(lists_of(case)).T)
    add(case, "friedman", statistic=test.statistic, p=test.pvalue)
    add_pairs(case, "nemenyi", scikit_posthocs.posthoc_nemenyi_friedman(np.array(lists_of(case))))


def of_groups(case: dict) -> None:
    test = stats.kruskal(*lists_of(case))
    add(case, "kruskal_wallis", statistic=test.statistic, p=test.pvalue)
    add_pairs(case, "dunn", scikit_posthocs.posthoc_dunn(lists_of(case)))


def of_family(case: dict) -> None:
    add(case, "adjusted_bh", values=stats.false_discovery_control(case["values"]))


def of_sample(case: dict) -> None:
    """BCa intervals of scipy's bootstrap replicates; ours must agree for the same replicates."""
    sample = np.array(case["values"])
    for name, statistic in (("mean", np.mean), ("median", np.median)):
        drawn = stats.bootstrap((sample,), statistic, n_resamples=300, method="BCa", rng=np.random.default_rng(1))
        interval = drawn.confidence_interval
        add(case, f"bca_{name}", low=interval.low, high=interval.high, values=drawn.bootstrap_distribution)
    add(case, "quartiles", values=np.quantile(sample, [0.25, 0.5, 0.75]))


def main() -> None:
    kinds = {"pairs": add_paired_goldens, "two": of_two, "blocks": of_blocks, "groups": of_groups, "family": of_family}
    kinds["sample"] = of_sample
    for case in json.loads((FOLDER / "inputs.json").read_text()):
        if case["kind"] in kinds:
            kinds[case["kind"]](case)
    (FOLDER / "scipy.json").write_text("[\n" + ",\n".join(json.dumps(one) for one in found) + "\n]\n")
    print(len(found), "expectations")


if __name__ == "__main__":
    main()
