"""joulemap bench serve plans requests from a seed: the same seed gives the same arrivals, lengths and prompts."""

from __future__ import annotations

import json
import os
import random
import statistics
import subprocess
import sys

import pytest

from joulemap._bench_serve.lengths import MAX_TOKENS, parse_lengths
from joulemap._bench_serve.plan import Workload, plan_load_level, plan_warm_up
from joulemap._bench_serve.trace_file import ArrivalTraceError, parse_arrival_trace

UNIFORM_WORKLOAD = Workload(
    7, parse_lengths("8..64"), parse_lengths("1..9"), (("chat", 3.0), ("search", 1.0)), requests=400
)
TRACE = "arrival_s,prompt_tokens,output_tokens,tenant\n10,5,2,a\n11,6,3,\n14,7,4,b\n"


def trace_workload(**options) -> Workload:
    unit_length = parse_lengths("1")
    return Workload(1, unit_length, unit_length, trace=tuple(parse_arrival_trace(TRACE.splitlines(True))), **options)


def list_request_fields(level) -> list:
    return [
        [request.arrival_s.hex(), request.prompt_tokens, request.output_tokens, request.tenant, request.prompt()]
        for request in level.requests
    ]


def test_another_process_plans_the_same_requests_bit_for_bit():
    code = """
import json, sys
sys.path.append(sys.argv[1])
from joulemap._bench_serve.lengths import parse_lengths
from joulemap._bench_serve.plan import Workload, plan_load_level
workload = Workload(7, parse_lengths("8..64"), parse_lengths("1..9"), (("chat", 3.0), ("search", 1.0)), requests=400)
level = plan_load_level(workload, 3.7, 1, 0.2)
print(json.dumps([[r.arrival_s.hex(), r.prompt_tokens, r.output_tokens, r.tenant, r.prompt()] for r in level.requests]))
"""
    environment = {**os.environ, "PYTHONHASHSEED": "5"}
    package = os.path.dirname(os.path.dirname(sys.modules["joulemap"].__file__))
    process_output = subprocess.run(
        [sys.executable, "-c", code, package], capture_output=True, env=environment, check=True
    ).stdout
    assert json.loads(process_output) == list_request_fields(plan_load_level(UNIFORM_WORKLOAD, 3.7, 1, 0.2))


def test_another_seed_gives_other_arrivals_lengths_and_prompts():
    reference_level = plan_load_level(UNIFORM_WORKLOAD, 2, 0, 0.2)
    other_seed_level = plan_load_level(
        Workload(8, *[UNIFORM_WORKLOAD.prompt_tokens, UNIFORM_WORKLOAD.output_tokens], requests=400), 2, 0, 0.2
    )
    assert [request.arrival_s for request in reference_level.requests] != [
        request.arrival_s for request in other_seed_level.requests
    ]
    assert [request.prompt_tokens for request in reference_level.requests] != [
        request.prompt_tokens for request in other_seed_level.requests
    ]
    assert reference_level.requests[0].prompt()[:8] != other_seed_level.requests[0].prompt()[:8]


def test_levels_differ_only_in_their_rate_and_prompts():
    slow_level, fast_level = plan_load_level(UNIFORM_WORKLOAD, 2, 0, 0.2), plan_load_level(UNIFORM_WORKLOAD, 4, 1, 0.2)
    assert [request.arrival_s / 2 for request in slow_level.requests] == pytest.approx(
        [request.arrival_s for request in fast_level.requests]
    )
    assert [(request.prompt_tokens, request.output_tokens, request.tenant) for request in slow_level.requests] == [
        (request.prompt_tokens, request.output_tokens, request.tenant) for request in fast_level.requests
    ]
    prompts = [tuple(request.prompt()) for level in (slow_level, fast_level) for request in level.requests]
    assert len(set(prompts)) == 800, "a prefix cache would find a prompt again"


def test_poisson_arrivals_have_the_rate_and_exponential_gaps():
    times = [
        request.arrival_s
        for request in plan_load_level(Workload(3, *[parse_lengths("1")] * 2, requests=20_000), 5, 0, 0).requests
    ]
    gaps = [next_arrival_s - previous_arrival_s for previous_arrival_s, next_arrival_s in zip([0.0, *times], times)]
    assert statistics.mean(gaps) == pytest.approx(1 / 5, rel=0.03)
    assert statistics.stdev(gaps) == pytest.approx(1 / 5, rel=0.05)  # that of an exponential distribution is its mean


def test_a_duration_ends_the_arrivals():
    level = plan_load_level(Workload(3, *[parse_lengths("1")] * 2, duration_s=50), 4, 0, 0.2)
    assert 150 < len(level.requests) < 250 and 45 < level.span_s <= 50


def test_the_steady_part_leaves_out_the_ramp_and_what_follows_the_last_arrival():
    level = plan_load_level(UNIFORM_WORKLOAD, 2, 0, 0.25)
    assert level.steady_interval_s == (0.25 * level.span_s, level.span_s)
    single_request_workload = Workload(1, *[parse_lengths("1")] * 2, requests=1)
    assert plan_load_level(single_request_workload, 2, 0, 0.25).steady_interval_s is None


def test_tenants_are_chosen_by_weight():
    tenants = [request.tenant for request in plan_load_level(UNIFORM_WORKLOAD, 1, 0, 0.2).requests]
    assert tenants.count("chat") == pytest.approx(300, abs=40) and set(tenants) == {"chat", "search"}


def test_a_trace_gives_arrivals_after_its_first_row_lengths_and_tenants():
    level = plan_load_level(trace_workload(), None, 0, 0.2)
    assert [request.arrival_s for request in level.requests] == [0, 1, 4]
    assert [(request.prompt_tokens, request.output_tokens, request.tenant) for request in level.requests] == [
        (5, 2, "a"),
        (6, 3, None),
        (7, 4, "b"),
    ]
    assert level.rate_per_s == 0.5  # two gaps in 4 s


def test_a_trace_is_scaled_to_a_rate_and_cut_by_number_and_duration():
    assert [request.arrival_s for request in plan_load_level(trace_workload(), 1, 0, 0.2).requests] == [0, 0.5, 2]
    assert len(plan_load_level(trace_workload(requests=2), None, 0, 0.2).requests) == 2
    assert len(plan_load_level(trace_workload(duration_s=3), None, 0, 0.2).requests) == 2


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("arrival_s,prompt_tokens\n0,1\n", "output_tokens"),
        ("", "arrival_s"),
        ("arrival_s,prompt_tokens,output_tokens\n", "no rows"),
        ("arrival_s,prompt_tokens,output_tokens\nnan,1,1\n", "line 2"),
        ("arrival_s,prompt_tokens,output_tokens\n0,1,1\n1,0,1\n", "line 3: prompt_tokens"),
        ("arrival_s,prompt_tokens,output_tokens\n0,1,1.5\n", "line 2: output_tokens"),
        ("arrival_s,prompt_tokens,output_tokens\n0,1\n", "line 2: output_tokens"),
        ("arrival_s,prompt_tokens,output_tokens\n5,1,1\n4,1,1\n", "line 3"),
    ],
)
def test_a_damaged_trace_is_refused_with_its_line(text, named):
    with pytest.raises(ArrivalTraceError, match=named):
        parse_arrival_trace(text.splitlines(True))


def test_a_trace_of_simultaneous_arrivals_has_no_rate():
    rows = parse_arrival_trace("arrival_s,prompt_tokens,output_tokens\n3,1,1\n3,1,1\n".splitlines(True))
    workload = Workload(1, *[parse_lengths("1")] * 2, trace=tuple(rows))
    assert plan_load_level(workload, None, 0, 0.2).rate_per_s is None
    with pytest.raises(ValueError, match="at once"):
        plan_load_level(workload, 2, 0, 0.2)


def test_lengths_cover_their_range():
    draw = random.Random(1)
    assert {parse_lengths("3..5").draw(draw) for _ in range(200)} == {3, 4, 5}
    assert {parse_lengths("9").draw(draw) for _ in range(20)} == {9}
    values = sorted(parse_lengths("lognormal:100,0.5").draw(draw) for _ in range(4001))
    assert values[2000] == pytest.approx(100, rel=0.05)
    assert values[int(0.8413 * 4000)] == pytest.approx(100 * 2.718281828**0.5, rel=0.08)  # median and one sigma
    sampled_lengths = [parse_lengths("lognormal:1000000,5").draw(draw) for _ in range(500)]
    assert min(sampled_lengths) >= 1 and max(sampled_lengths) == MAX_TOKENS


@pytest.mark.parametrize(
    "text", ["", "0", "-3", "5..3", "1.5", "ten", "1..2..3", "lognormal:5", "lognormal:0,1", "9999999"]
)
def test_invalid_length_distributions_are_refused(text):
    with pytest.raises(ValueError, match="lognormal:256,0.5"):
        parse_lengths(text)


def test_requests_before_the_first_level_have_other_prompts():
    warm_up = plan_warm_up(UNIFORM_WORKLOAD, 3)
    level = plan_load_level(UNIFORM_WORKLOAD, 2, 0, 0.2)
    assert [request.prompt_tokens for request in warm_up] == [request.prompt_tokens for request in level.requests[:3]]
    assert warm_up[0].prompt() != level.requests[0].prompt()
    assert [request.tenant for request in plan_warm_up(trace_workload(), 4)] == ["a", None, "b", "a"]
