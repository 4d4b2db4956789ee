"""What the collector measures for networks that are listed in a folder. No GPU, no framework."""

from __future__ import annotations

import gzip
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "python" / "joulemap"))

from _collect import command, design, listed, networks  # noqa: E402
from _collect.tables import read_csv_records  # noqa: E402

SEED = ROOT / "data" / "seed"
OPERATIONS_CSV = """id,kind,parameters,dtype,pass,phase
0,dense,rows=2;in=3;out=4;bias=1,fp32,forward,forward
1,view,batch=1;rows=1;width=1,fp32,forward,forward
2,add,form=same;batch=1;rows=2;width=3,fp32,forward,forward
3,add,form=same;batch=1;rows=2;width=3,fp32,backward,backward
4,multiply,form=row;batch=1;rows=2;width=3,fp32,forward,forward
"""
SETTINGS_CSV = """network,family,package,batch,size,dtype,pass,unknown,operations
first,one,keras,2,3,default,inference,,0:1 1:4 2:3 3:1
second,other,keras,2,3,default,inference,,4:1 2:2
"""


@pytest.fixture(scope="module")
def plan():
    return listed.plan_listed_rows(SEED)


def test_each_operation_that_a_forward_pass_launches_is_measured_once_network_after_network(tmp_path):
    for name, text in (("operations", OPERATIONS_CSV), ("settings", SETTINGS_CSV)):
        (tmp_path / f"{name}.csv.gz").write_bytes(gzip.compress(text.encode()))
    planned = listed.plan_listed_rows(tmp_path)
    assert {(row.kind, row.source) for row in planned[:2]} == {("dense", "one"), ("add", "one")}
    assert [(row.kind, row.source) for row in planned[2:]] == [("multiply", "other")]


def test_a_listed_row_has_the_key_of_its_line(plan):
    lines = {" ".join((line["kind"], line["parameters"], line["dtype"], line["pass"])) for line in read_seed_rows()}
    assert {row.key for row in plan} == lines


def read_seed_rows() -> list[dict]:
    return list(read_csv_records(SEED / "operations.csv.gz"))


def test_every_listed_network_has_all_nine_settings_and_is_not_held_out():
    settings = list(read_csv_records(SEED / "settings.csv.gz"))
    expected_settings = {(str(batch), str(size)) for batch in (16, 32, 64) for size in (300, 400, 500)}
    for network in {setting["network"] for setting in settings}:
        assert {(line["batch"], line["size"]) for line in settings if line["network"] == network} == expected_settings
    assert not networks.HELD_OUT_FAMILIES & {setting["family"] for setting in settings}


def test_the_networks_that_come_first_are_complete_before_the_next_one_begins(plan):
    families = [row.source for row in plan]
    assert families[:216] == ["VGG"] * 216 and "VGG" not in families[216:]


def test_listed_rows_fit_into_the_memory_of_a_gpu(plan):
    assert all(0 < row.cost.bytes < 20e9 for row in plan)


def test_work_of_a_non_square_convolution_kernel():
    flat = {"batch": 1, "channels": 2, "out": 4, "height": 9, "width": 9, "kernel": 1, "stride": 1, "padding": 0}
    extra_parameters = {"dilation": 1, "groups": 1, "bias": False, "kernel_width": 7, "padding_width": 3}
    convolution_work = design.OPERATION_KINDS["convolution"].forward_work({**flat, **extra_parameters})
    assert (
        convolution_work.flops == 2 * 9 * 9 * 4 * 2 * 7
        and convolution_work.weights == 4 * 2 * 7
        and convolution_work.outputs == 4 * 9 * 9
    )


def test_padding_of_one_side_has_the_recorded_output_size():
    entry = {"batch": 1, "channels": 2, "height": 4, "width": 4, "form": "constant", "padding": 0}
    assert (
        design.OPERATION_KINDS["padding"].forward_work({**entry, "out_height": 5, "out_width": 5}).outputs == 2 * 5 * 5
    )
    assert design.OPERATION_KINDS["padding"].forward_work({**entry, "padding": 1}).outputs == 2 * 6 * 6


def test_a_folder_without_a_list_is_an_error(tmp_path):
    with pytest.raises(SystemExit, match="does not contain operations.csv.gz"):
        command.main(["--plan", "--listed", str(tmp_path)])


def test_the_plan_of_a_list_counts_its_rows_and_no_networks(capsys):
    assert command.main(["--plan", "--listed", str(SEED)]) == 0
    result = capsys.readouterr().out
    assert ["dense", "36", "36"] in [line.split() for line in result.splitlines()]
    assert "networks:" not in result
