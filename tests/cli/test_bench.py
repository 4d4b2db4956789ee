"""`joulemap bench serve` of the program: the same options as the Python package, which it starts and whose exit code it
returns. tests/python/test_bench_serve_command.py tests the benchmark."""

from __future__ import annotations

import json
import os
import re
import sys

import pytest
from support.fake_endpoint import GOOD_ANSWER, answer_with_bytes, serving

FAST_LOAD_OPTIONS = ["--model", "m", "--rate", "100", "--requests", "4", "--warm-up", "0"]
COMMON_OPTIONS = {"--help", "--color", "--quiet", "--verbose", "--sysroot"}


@pytest.fixture
def environment() -> dict[str, str]:
    return {**os.environ, "JOULEMAP_PYTHON": sys.executable}


def test_the_program_and_the_package_have_the_same_options_and_texts(binaries, joulemap):
    sys.path.append(str(binaries.parent / "python"))
    from joulemap._bench_serve.arguments import make_bench_parser

    actions = make_bench_parser()._actions
    package = {name: action for action in actions for name in action.option_strings if name.startswith("--")}
    text = joulemap("bench", "serve", "--help").out
    program = set(re.findall(r"^  (?:-\w,)?(--[a-z-]+)", text, re.MULTILINE))
    assert program - COMMON_OPTIONS == set(package) - COMMON_OPTIONS
    words = " ".join(text.split())
    for name in program - COMMON_OPTIONS:
        assert " ".join(package[name].help.replace("%%", "%").split()) in words, name


def test_the_options_reach_the_package(joulemap, environment, tmp_path):
    trace = tmp_path / "a trace.csv"
    trace.write_text("arrival_s,prompt_tokens,output_tokens\n0,4,2\n0.01,5,3\n")
    with serving(answer_with_bytes(GOOD_ANSWER)) as server:
        words = ["--endpoint", server.url, "--model", "m", "--warm-up", "0", "--arrivals", "trace", trace, "--chat"]
        bench_outcome = joulemap("bench", "serve", *words, "--json", env=environment)
    assert bench_outcome.code == 0, bench_outcome.err
    document = bench_outcome.json
    assert document["schema"] == "joulemap.bench_serve/1" and document["target"]["api"] == "chat"
    assert document["workload"]["trace_file"] == str(trace) and document["levels"][0]["requests"]["succeeded"] == 2


def test_output_file_and_quiet_options_reach_the_package(joulemap, environment, tmp_path):
    with serving(answer_with_bytes(GOOD_ANSWER)) as server:
        bench_outcome = joulemap(
            "bench",
            "serve",
            "--endpoint",
            server.url,
            *FAST_LOAD_OPTIONS,
            "-q",
            "-o",
            tmp_path / "table.txt",
            env=environment,
        )
    assert (bench_outcome.code, bench_outcome.out, bench_outcome.err) == (0, "", "")
    assert "TTFT" in (tmp_path / "table.txt").read_text() and "note:" not in (tmp_path / "table.txt").read_text()


def test_sysroot_option_selects_the_measured_machine(joulemap, environment, sysroots):
    with serving(answer_with_bytes(GOOD_ANSWER)) as server:
        words = ["--endpoint", server.url, *FAST_LOAD_OPTIONS, "--json", "--sysroot", sysroots / "intel-2socket"]
        bench_outcome = joulemap("bench", "serve", *words, env=environment)
    domains = [domain["name"] for domain in json.loads(bench_outcome.out)["levels"][0]["energy"]["domains"]]
    assert "package-1" in domains


def test_the_exit_code_is_that_of_the_benchmark(joulemap, environment):
    with serving(answer_with_bytes(b"HTTP/1.1 500 Broken\r\n\r\n")) as server:
        assert joulemap("bench", "serve", "--endpoint", server.url, *FAST_LOAD_OPTIONS, env=environment).code == 1
    bench_outcome = joulemap("bench", "serve", "--endpoint", "http://127.0.0.1:1/v1", "--ramp", "95%", env=environment)
    assert bench_outcome.code == 2 and "--ramp" in bench_outcome.err
    bench_outcome = joulemap("bench", "serve")
    assert bench_outcome.code == 2 and "--endpoint or --engine" in bench_outcome.err


def test_a_python_that_is_not_there_is_reported_with_a_remedy(joulemap, environment, tmp_path):
    words = ["bench", "serve", "--endpoint", "http://127.0.0.1:1/v1"]
    bench_outcome = joulemap(*words, env={**environment, "JOULEMAP_PYTHON": str(tmp_path / "none")})
    assert bench_outcome.code == 77 and "JOULEMAP_PYTHON" in bench_outcome.err
    fake = tmp_path / "python"
    code = "import sys; sys.modules['joulemap'] = None; exec(sys.argv[1])"
    fake.write_text(f'#!/bin/sh\nshift\nexec {sys.executable} -c "{code}" "$@"\n')
    fake.chmod(0o755)
    bench_outcome = joulemap(*words, env={**environment, "JOULEMAP_PYTHON": str(fake)})
    assert bench_outcome.code == 77 and "a Python with the joulemap package" in bench_outcome.err
