# SPDX-License-Identifier: Apache-2.0
"""The wheel alone in a new environment: no other package, no checkout."""

from __future__ import annotations

import json
import re

BUSY = "sum(i * i for i in range(3_000_000))"


def test_the_environment_contains_no_other_package(bare):
    names = {package["name"] for package in json.loads(bare.output("pip list --format json --disable-pip-version-check"))}
    assert names <= {"joulemap", "pip", "setuptools"}


def test_the_program_and_the_module_print_the_same_version(bare):
    version = bare.output("joulemap --version")
    assert re.fullmatch(r"joulemap \d+\.\d+\.\d+\n", version)
    assert bare.output("python -m joulemap --version") == version
    assert bare.output("python -c 'import joulemap; print(\"joulemap\", joulemap.__version__)'") == version
    assert bare.output("pip show joulemap | grep ^Version").split()[1] == version.split()[1]


def test_doctor_lists_the_sensors(bare):
    assert "sensors" in json.loads(bare.output("joulemap doctor --json"))
    assert bare.output("joulemap doctor").startswith("joulemap ")


def test_stat_prints_the_energy_of_a_command(bare):
    process = bare.run("joulemap stat -- true")
    assert process.returncode == 0
    assert "Energy of 'true'" in process.stdout + process.stderr


def test_record_and_report_show_the_energy_of_a_program(bare):
    bare.output(f"joulemap record -o bare.joule -- python -c '{BUSY}'")
    assert " J" in bare.output("joulemap report bare.joule")
    assert "<html" in bare.output("joulemap report bare.joule --html page.html && cat page.html").lower()


def test_the_package_measures_a_block_of_code(bare):
    program = f'import joulemap as jm\nwith jm.measure("work") as m:\n    {BUSY}\nprint(m.joules > 0)'
    assert bare.output(f"python -c '{program}'") == "True\n"


def test_the_exit_status_of_the_program_is_kept(bare):
    status = bare.run("joulemap report missing.joule").returncode
    assert status != 0
    assert bare.run("python -m joulemap report missing.joule").returncode == status


def test_uninstalling_leaves_no_files(bare, wheel):
    folder = bare.output("python -c 'import joulemap, os; print(os.path.dirname(joulemap.__file__))'").strip()
    bare.output("pip uninstall --yes --quiet joulemap")
    left = bare.output(f"find {folder} -type f -not -name '*.pyc' 2>/dev/null || true")
    bare.output(f"pip install --quiet --no-index --disable-pip-version-check {wheel}")
    assert left == ""
