#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What scipy says of tests/data/statistics/inputs.json, into tests/data/statistics/scipy.json. How to run: see inputs.py."""

from __future__ import annotations

import json
import math

import numpy as np
import scikit_posthocs
import scipy
from inputs import GOLDENS_FOLDER
from scipy import stats

REFERENCE_IMPLEMENTATION = f"scipy {scipy.__version__}"
golden_results: list[dict] = []


def add_golden_result(case: dict, test: str, **expected: object) -> None:
    numbers = {
        name: value.tolist() if isinstance(value, np.ndarray) else float(value) for name, value in expected.items()
    }
    golden_results.append({"id": case["id"], "test": test, "oracle": REFERENCE_IMPLEMENTATION, **numbers})


def has_ties(values: list[float]) -> bool:
    return len(set(values)) < len(values)


def add_paired_goldens(case: dict) -> None:
    first_sample, second_sample = np.array(case["first"], float), np.array(case["second"], float)
    differences = first_sample - second_sample
    nonzero = differences[differences != 0]
    if len(nonzero) == len(differences) and not has_ties(abs(differences).tolist()) and len(nonzero) <= 200:
        exact_result = stats.wilcoxon(first_sample, second_sample, method="exact")
        add_golden_result(case, "signed_rank_drop", p=exact_result.pvalue)
        add_golden_result(case, "signed_rank_pratt", p=exact_result.pvalue)
    elif len(nonzero) <= 13:
        # All signs, zeros and ties as they are.
        for zeros, test in (("wilcox", "signed_rank_drop"), ("pratt", "signed_rank_pratt")):
            permutation_method = stats.PermutationMethod(n_resamples=np.inf)
            add_golden_result(
                case,
                test,
                p=stats.wilcoxon(first_sample, second_sample, zero_method=zeros, method=permutation_method).pvalue,
            )
    elif len(nonzero) > 200:
        asymptotic_result = stats.wilcoxon(
            first_sample, second_sample, zero_method="wilcox", correction=True, method="asymptotic"
        )
        add_golden_result(case, "signed_rank_drop", p=asymptotic_result.pvalue)
    if len(first_sample) >= 3 and np.ptp(first_sample) > 0 and np.ptp(second_sample) > 0:
        add_correlation_goldens(case, first_sample, second_sample)


def add_correlation_goldens(case: dict, first_sample: np.ndarray, second_sample: np.ndarray) -> None:
    has_tied_values = has_ties(first_sample.tolist()) or has_ties(second_sample.tolist())
    rho = stats.spearmanr(first_sample, second_sample)
    # Up to 9 pairs ours is exact; and Student's t has no meaning at a correlation of 1.
    has_p_value = len(first_sample) > 9 and abs(rho.statistic) < 0.9999
    add_golden_result(case, "spearman", estimate=rho.statistic, **({"p": rho.pvalue} if has_p_value else {}))
    if not has_tied_values and len(first_sample) <= 50:
        tau = stats.kendalltau(first_sample, second_sample, method="exact")
    else:
        tau = stats.kendalltau(first_sample, second_sample, method="asymptotic")
    add_golden_result(
        case,
        "kendall",
        estimate=tau.statistic,
        **({"p": tau.pvalue} if not has_tied_values or len(first_sample) > 8 else {}),
    )
    add_golden_result(case, "theil_sen", estimate=stats.theilslopes(first_sample).slope)


def add_two_sample_goldens(case: dict) -> None:
    first_sample, second_sample = case["first"], case["second"]
    m, n = len(first_sample), len(second_sample)
    is_exact = m * n * min(m, n) * (m + n) <= 2e7
    if is_exact and not has_ties(first_sample + second_sample):
        test = stats.mannwhitneyu(first_sample, second_sample, method="exact")
        add_golden_result(case, "rank_sum", statistic=test.statistic, p=test.pvalue)
    elif not is_exact:
        test = stats.mannwhitneyu(first_sample, second_sample, method="asymptotic", use_continuity=True)
        add_golden_result(case, "rank_sum", statistic=test.statistic, p=test.pvalue)
    elif math.comb(m + n, m) <= 50_000:
        # Not doubled, but both tails by their distance from the mean, as coin has it.
        def distance_from_mean(x: np.ndarray, y: np.ndarray, axis: int = -1) -> np.ndarray:
            u_statistic = stats.mannwhitneyu(x, y, axis=axis, method="asymptotic").statistic
            return abs(u_statistic - m * n / 2)

        permutation_result = stats.permutation_test(
            (first_sample, second_sample),
            distance_from_mean,
            alternative="greater",
            n_resamples=np.inf,
            vectorized=True,
        )
        add_golden_result(case, "rank_sum", p=permutation_result.pvalue)


def add_pairwise_goldens(case: dict, test: str, table: object) -> None:
    """The upper half of a table of all against all."""
    all_pairs = table.to_numpy()
    add_golden_result(case, test, values=all_pairs[np.triu_indices(len(all_pairs), 1)])
    golden_results[-1]["oracle"] = f"scikit-posthocs {scikit_posthocs.__version__}"


def split_into_groups(case: dict) -> list[np.ndarray]:
    return np.split(np.array(case["values"], float), np.cumsum(case["sizes"])[:-1])


def add_block_goldens(case: dict) -> None:
    test = stats.friedmanchisquare(*np.array(split_into_groups(case)).T)
    add_golden_result(case, "friedman", statistic=test.statistic, p=test.pvalue)
    add_pairwise_goldens(case, "nemenyi", scikit_posthocs.posthoc_nemenyi_friedman(np.array(split_into_groups(case))))


def add_group_goldens(case: dict) -> None:
    test = stats.kruskal(*split_into_groups(case))
    add_golden_result(case, "kruskal_wallis", statistic=test.statistic, p=test.pvalue)
    add_pairwise_goldens(case, "dunn", scikit_posthocs.posthoc_dunn(split_into_groups(case)))


def add_family_goldens(case: dict) -> None:
    add_golden_result(case, "adjusted_bh", values=stats.false_discovery_control(case["values"]))


def add_sample_goldens(case: dict) -> None:
    """BCa intervals of scipy's bootstrap replicates; ours must agree for the same replicates."""
    sample = np.array(case["values"])
    for name, statistic in (("mean", np.mean), ("median", np.median)):
        bootstrap_result = stats.bootstrap(
            (sample,), statistic, n_resamples=300, method="BCa", rng=np.random.default_rng(1)
        )
        interval = bootstrap_result.confidence_interval
        add_golden_result(
            case, f"bca_{name}", low=interval.low, high=interval.high, values=bootstrap_result.bootstrap_distribution
        )
    add_golden_result(case, "quartiles", values=np.quantile(sample, [0.25, 0.5, 0.75]))


def main() -> None:
    kinds = {
        "pairs": add_paired_goldens,
        "two": add_two_sample_goldens,
        "blocks": add_block_goldens,
        "groups": add_group_goldens,
        "family": add_family_goldens,
    }
    kinds["sample"] = add_sample_goldens
    for case in json.loads((GOLDENS_FOLDER / "inputs.json").read_text()):
        if case["kind"] in kinds:
            kinds[case["kind"]](case)
    (GOLDENS_FOLDER / "scipy.json").write_text(
        "[\n" + ",\n".join(json.dumps(golden_result) for golden_result in golden_results) + "\n]\n"
    )
    print(len(golden_results), "expectations")


if __name__ == "__main__":
    main()
