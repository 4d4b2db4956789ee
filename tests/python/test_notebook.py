"""Ledgers and runs as HTML, as Jupyter shows them."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

GPU_RECORDING = Path(__file__).resolve().parent.parent.parent / "examples" / "resnet50-h200.joule"


def render_html(binaries: Path, code: str) -> str:
    begin = f"import dataclasses\nimport joulemap as jm\nrun = jm.load({str(GPU_RECORDING)!r})\n"
    program = f"{begin}{code}\nprint(shown._repr_html_())"
    environment = {**os.environ, "PYTHONPATH": str(binaries.parent / "python")}
    command = [sys.executable, "-c", program]
    return subprocess.run(command, capture_output=True, text=True, check=True, env=environment).stdout


def test_a_run_shows_its_total_and_the_tree_of_its_layers(binaries):
    rendered_html = render_html(binaries, "shown = run")
    assert "J (" in rendered_html and "measured in" in rendered_html and rendered_html.count("<tr>") > 10
    assert 'title="train backward"' in rendered_html and ">gpu0<" in rendered_html


def test_phases_are_below_their_modes(binaries):
    rendered_html = render_html(binaries, 'shown = run.ledger("phase")')
    assert '<span title="train">train<' in rendered_html
    assert '<span title="train forward">&emsp;forward<' in rendered_html


def test_submodules_are_below_their_modules(binaries):
    rendered_html = render_html(binaries, 'shown = run.ledger("module")')
    assert '<span title="layer1">layer1<' in rendered_html
    assert '<span title="layer1.0.conv2">&emsp;&emsp;conv2<' in rendered_html


def test_operations_are_below_their_modules_as_wholes(binaries):
    rendered_html = render_html(binaries, 'shown = run.ledger("op")')
    assert '<span title="train backward layer1">&emsp;&emsp;layer1<' in rendered_html
    operation = '<span title="train backward layer1.0.conv1 ConvolutionBackward0">'
    assert f"{operation}{5 * '&emsp;'}ConvolutionBackward0<" in rendered_html
    assert ">torch<" not in rendered_html and ">functional<" not in rendered_html


def test_names_are_escaped_and_long_tables_say_what_they_leave_out(binaries):
    code = (
        'shown = run.ledger("kernel", mode="integral")\n'
        'shown.rows[0] = dataclasses.replace(shown.rows[0], path=("<b>name</b>",), energy_j=1e9)'
    )
    rendered_html = render_html(binaries, code)
    assert "&lt;b&gt;name" in rendered_html and "<b>" not in rendered_html
    assert "more rows" in rendered_html
