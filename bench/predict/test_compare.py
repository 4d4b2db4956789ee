# SPDX-License-Identifier: Apache-2.0
"""External predictions are compared with the baselines on the same rows."""

from __future__ import annotations

import compare
import metrics
import numpy
import pandas
import pytest
import rows
import splits


def test_errors_are_percentages_of_what_was_measured():
    result = metrics.compute_error_measures(numpy.array([1.0, 2.0, 4.0]), numpy.array([1.1, 1.8, 4.0]))
    assert result["rmspe"] == pytest.approx((200 / 3) ** 0.5)
    assert result["mape"] == pytest.approx(20 / 3)
    assert result["median"] == pytest.approx(10)
    assert result["bias"] == pytest.approx(0, abs=1e-9)
    assert result["tau"] == pytest.approx(1)


def test_intervals_are_described_by_coverage_and_half_width():
    joules, predicted = numpy.array([1.0, 2.0]), numpy.array([1.0, 1.0])
    result = metrics.compute_error_measures(joules, predicted, (numpy.array([0.9, 0.9]), numpy.array([1.1, 1.1])))
    assert result["coverage"] == pytest.approx(50) and result["half_width"] == pytest.approx(10)


def test_kendall_tau_of_one_row_is_none():
    assert metrics.compute_error_measures(numpy.array([1.0]), numpy.array([2.0]))["tau"] is None


def test_our_predictions_have_a_column_and_intervals(tmp_path):
    data = rows.read()
    folds = splits.select_folds(splits.make_all_folds(data), "larger")
    keys = sorted(folds[0].test)
    joules = data.operations["energy_j"].reindex(keys)
    our_predictions = pandas.DataFrame({"split": "larger", "key": keys, "predicted_j": joules.to_numpy() * 1.1})
    our_predictions = our_predictions.assign(
        low_j=our_predictions["predicted_j"] * 0.8, high_j=our_predictions["predicted_j"] * 1.2
    )
    our_predictions.to_csv(tmp_path / "ours.csv", index=False)
    loaded_predictions = compare.read_our_predictions(tmp_path / "ours.csv", folds)
    result = compare.compute_measures(data, loaded_predictions, "larger")
    assert result[compare.ALL_ROWS_LABEL][compare.OUR_MODEL]["rmspe"] == pytest.approx(10)
    text = "\n".join(compare.format_split("larger", result, compare.REPORTED_MEASURES))
    assert "| dense |" in text and "| 100.0 % | 20.0 % |" in text


def test_a_prediction_that_no_fold_tests_is_refused(tmp_path):
    (tmp_path / "ours.csv").write_text("split,key,predicted_j\nlarger,dense|rows=1|fp32|forward|0,1.0\n")
    with pytest.raises(SystemExit, match="write the folds anew"):
        compare.read_our_predictions(tmp_path / "ours.csv", [])


def test_rows_with_a_disturbed_host_are_dropped():
    """Keeps the fast row of "waits" and GPU-bound "works"; drops "slow" (disturbed only) and "odd" (unexplained
    time)."""
    columns = ["key", "slice", "time_s", "issue_s", "launch_s"]
    measured = [
        ("waits", "s", 5e-3, 4.8e-3, 6e-6),
        ("waits", "s", 9e-3, 8.8e-3, 9e-6),
        ("slow", "s", 9e-3, 8.8e-3, 9e-6),
        ("works", "old", 9e-3, None, None),
        ("odd", "s", 9e-3, 5e-3, 6e-6),
    ]
    busy_s = pandas.Series({"waits": 2e-3, "slow": 2e-3, "works": 8.9e-3, "odd": 2e-3})
    undisturbed_rows = rows.select_undisturbed(pandas.DataFrame(measured, columns=columns), busy_s)
    assert undisturbed_rows[["key", "time_s"]].values.tolist() == [["waits", 5e-3], ["works", 9e-3]]
