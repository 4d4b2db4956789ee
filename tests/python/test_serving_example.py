"""The example engine of examples/serving: batching does not change its results, and its steps are recorded."""

from __future__ import annotations

from pathlib import Path

SERVING_EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "serving"

PROGRAM = f"""
import random, sys
sys.path.insert(0, {str(SERVING_EXAMPLE)!r})
from engine import SHAPES, Engine, Request

engine_steps = 0

def serve(**options):
    global engine_steps
    draw = random.Random(3)
    engine = Engine(SHAPES["tiny"], **options)
    requests = [
        Request(str(i), [draw.randrange(1024) for _ in range(draw.randrange(1, 60))], draw.randrange(1, 40), "t")
        for i in range(8)
    ]
    for request in requests:
        engine.submit(request)
    while engine.has_work():
        engine.step()
    engine_steps += engine.steps
    assert len(engine.cache.free) == options.get("cache_blocks", 512), "blocks leak"
    return [request.output for request in requests]

together = serve()
assert together == serve(chunk_tokens=16, most_requests=2), "chunked prefill and batch size change results"
assert together == serve(cache_blocks=8, most_requests=5), "preemption changes results"
engine = Engine(SHAPES["tiny"])
engine.submit(Request("gone", [1, 2, 3], 50))
engine.step()
engine.abort("gone")
assert not engine.has_work()
print(engine_steps + engine.steps)
"""


def test_batching_chunking_and_preemption_do_not_change_results_and_steps_are_recorded(record):
    recorded_program = record(PROGRAM)
    part = recorded_program.part
    # A step of the engine is a step of the report, although it calls the model up to twice. The first one is inferred
    # from the first call; each report of a step begins the next one.
    assert part.steps in (int(recorded_program.out), int(recorded_program.out) + 1)
    requests = [line.split(" ") for line in part.of("request")]
    assert [request_fields[2] for request_fields in requests[:8]] == [str(number) for number in range(8)]
    assert requests[0][3] == "t"
    entries = [tuple(map(int, line.split())) for line in part.of("in-step")]
    first_request_entries = [entry for entry in entries if entry[1] == 0]
    assert (
        sum(entry[2] for entry in first_request_entries) > 0 and first_request_entries[-1][7] == 1
    )  # its prompt was computed, and it finished
    events = {entry[7] for entry in entries}
    assert 2 in events, "no preemption was recorded"
    assert entries[-1][7] == 4, "the abort was not recorded"
