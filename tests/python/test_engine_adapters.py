"""The adapters of engines on stand-ins with their classes (tests/support/engines): what each step computes is recorded,
and neither faults of the engine nor unknown versions of it reach the program. vLLM and SGLang need a GPU; of the other
engines, tests/integrations runs the real ones."""

from __future__ import annotations

import configparser
import os
import sys
from pathlib import Path

from engine_entries import ABORTED, FINISHED, PREEMPTED, Entry, read_request_entries, read_request_models

ROOT = Path(__file__).resolve().parents[2]
sys.path.append(str(ROOT / "tools"))
import make_wheel  # noqa: E402

ENGINES = ROOT / "tests" / "support" / "engines"
PACKAGES_FOLDER = ROOT / os.environ.get("JOULEMAP_BUILD", "build") / "python"

VLLM_PROGRAM = f"""
import sys
sys.path.insert(0, {str(ENGINES)!r})
from vllm.v1.core.sched.output import ModelRunnerOutput
from vllm.v1.core.sched.scheduler import AsyncScheduler, Scheduler
from vllm.v1.request import Request, RequestStatus

def run_model(scheduler, output, accepted=0):
    ids, sampled = list(output.num_scheduled_tokens), []
    for id in ids:
        request = scheduler.requests.get(id)
        drafts = len(output.scheduled_spec_decode_tokens.get(id, ()))
        is_chunk = request is None or request.num_computed_tokens < request.num_tokens
        sampled.append([] if is_chunk else [7] * (1 + min(accepted, drafts)))
    return ModelRunnerOutput(ids, {{id: index for index, id in enumerate(ids)}}, sampled)

def step(scheduler, accepted=0):
    output = scheduler.schedule()
    result = run_model(scheduler, output, accepted)
    scheduler.update_from_output(output, result)
    return output

def serve(scheduler, accepted=0):
    while scheduler.requests:
        step(scheduler, accepted)
"""

SGLANG_PROGRAM = f"""
import sys
from types import SimpleNamespace
sys.path.insert(0, {str(ENGINES)!r})
from sglang.srt.managers.schedule_batch import ForwardMode, Req, ScheduleBatch
from sglang.srt.managers.scheduler import Scheduler

def step(scheduler, batch):
    scheduler.process_batch_result(batch, scheduler.run_batch(batch))
"""

GENERATE_PROGRAM = f"""
import sys, threading
sys.path.insert(0, {str(ENGINES)!r})
import torch
from transformers.generation.utils import Cache, GenerationMixin

class Model(GenerationMixin):
    pass

model = Model()

def prompts(length, sequences=1):
    return torch.zeros(sequences, length, dtype=torch.int64)
"""

BATCHING_PROGRAM = f"""
import sys, time
sys.path.insert(0, {str(ENGINES)!r})
from transformers.generation.continuous_batching.continuous_api import ContinuousBatchProcessor, make_state

processor = ContinuousBatchProcessor(use_async_batching=True)

def add(id, prompt, tokens):
    processor.scheduler.active_requests[id] = make_state(id, prompt, tokens)

def step(update=True):
    if not processor.prepare_next_batch():
        return False
    processor._generation_step(processor)
    if update:
        processor.update_batch()
    return True
"""

LLAMA_PROGRAM = f"""
import sys
sys.path.insert(0, {str(ENGINES)!r})
from llama_cpp.llama import Llama

llama = Llama(n_batch=16)
"""

GENAI_PROGRAM = f"""
import sys
sys.path.insert(0, {str(ENGINES)!r})
import onnxruntime_genai as og

model = og.Model()

def generator():
    return og.Generator(model, og.GeneratorParams(model))
"""


def captured_entries(recorded, engine: str) -> dict[str, list[Entry]]:
    assert "engine_not_captured" not in recorded.part.diagnostics, recorded.part.of("diagnostic")
    assert any(line.split(" ", 1)[1].startswith(engine) for line in recorded.part.of("fact"))
    return read_request_entries(recorded.part)


def test_vllm_chunked_prefill_and_decode(record):
    recorded_program = record(
        VLLM_PROGRAM
        + "s = Scheduler(budget=16)\ns.add_request(Request('a', 20, 3))\ns.add_request(Request('b', 4, 2))\nserve(s)"
    )
    entries = captured_entries(recorded_program, "vLLM")
    assert entries["a"] == [
        Entry(16, 0, 0, 0, 16, 0), Entry(4, 0, 1, 0, 20, 0), Entry(0, 0, 1, 0, 21, 0), Entry(0, 0, 1, 0, 22, FINISHED),
    ]  # fmt: skip
    assert entries["b"] == [Entry(4, 0, 1, 0, 4, 0), Entry(0, 0, 1, 0, 5, FINISHED)]
    assert read_request_models(recorded_program.part) == {"a": "tiny", "b": "tiny"}
    assert recorded_program.part.steps in (4, 5)  # of the engine; the first may be inferred before it


def test_vllm_prefix_cache_counts_in_the_first_step_only(record):
    program = (
        VLLM_PROGRAM + "s = Scheduler(budget=8)\ns.prefix_hits['a'] = 16\ns.add_request(Request('a', 30, 1))\nserve(s)"
    )
    assert captured_entries(record(program), "vLLM")["a"] == [
        Entry(8, 16, 0, 0, 24, 0),
        Entry(6, 0, 1, 0, 30, FINISHED),
    ]


def test_vllm_rejected_speculation(record):
    program = VLLM_PROGRAM + "s = Scheduler(draft_tokens=3)\ns.add_request(Request('a', 5, 5))\nserve(s, accepted=1)"
    assert captured_entries(record(program), "vLLM")["a"] == [
        Entry(5, 0, 1, 0, 5, 0), Entry(0, 0, 2, 2, 7, 0), Entry(0, 0, 2, 2, 9, FINISHED),
    ]  # fmt: skip


def test_vllm_a_preempted_request_computes_its_tokens_again(record):
    program = (
        VLLM_PROGRAM + "s = Scheduler(cache_tokens=14)\nfor id in 'ab':\n    s.add_request(Request(id, 6, 4))\nserve(s)"
    )
    entries = captured_entries(record(program), "vLLM")["b"]
    events = [entry for entry in entries if entry.events & PREEMPTED]
    assert len(events) == 1 and events[0].prompt == events[0].decoded == 0
    recomputed_entry = entries[entries.index(events[0]) + 1]
    assert (
        recomputed_entry.prompt == events[0].context + 1
    )  # what was in the cache, and the token that was generated since
    assert sum(entry.decoded for entry in entries) == 4
    assert entries[-1].events == FINISHED


def test_vllm_asynchronous_steps_do_not_overlap_and_end_requests_once(record):
    program = (
        VLLM_PROGRAM
        + """
s = AsyncScheduler()
s.add_request(Request('a', 5, 3))
s.add_request(Request('b', 5, 6))
queue = []
while s.requests or queue:
    if s.requests:
        output = s.schedule()
        if output.total_num_scheduled_tokens:
            queue.append((output, run_model(s, output)))
    if len(queue) > 1 or not s.requests:
        s.update_from_output(*queue.pop(0))
"""
    )
    recorded_program = record(program)
    entries = captured_entries(recorded_program, "vLLM")
    assert sum(entry.decoded for entry in entries["a"]) == 3
    assert [entry.events for entry in entries["a"]].count(FINISHED) == 1
    assert entries["a"][-1] == Entry(0, 0, 0, 1, 7, FINISHED)  # scheduled before its end was known
    times = [tuple(map(int, line.split()[1:3])) for line in recorded_program.part.of("engine-step")]
    assert all(next_step[0] >= previous_step[1] for previous_step, next_step in zip(times, times[1:]))


def test_vllm_aborts_between_and_during_steps(record):
    program = (
        VLLM_PROGRAM
        + """
s = Scheduler()
for id in 'abcd':
    s.add_request(Request(id, 3, 9, stop=['x'] if id == 'c' else ()))
step(s)
s.finish_requests('a', RequestStatus.FINISHED_ABORTED)
s.finish_requests(['c', 'unknown'], RequestStatus.FINISHED_ABORTED)
output = s.schedule()
result = run_model(s, output)
s.finish_requests({'b'}, RequestStatus.FINISHED_ABORTED)  # while the model computes
s.update_from_output(output, result)
s.add_request(Request('never', 3, 9))
s.finish_requests(None, RequestStatus.FINISHED_ABORTED)
"""
    )
    recorded_program = record(program)
    entries = captured_entries(recorded_program, "vLLM")
    assert [entry.events for entry in entries["a"]] == [0, ABORTED]
    assert [entry.events for entry in entries["c"]] == [0, FINISHED]  # how vLLM ends a request at a stop string
    assert entries["b"][-1] == Entry(0, 0, 0, 1, 3, ABORTED)
    assert entries["d"][-1].events == ABORTED
    assert "never" not in entries
    assert "engine_events_unknown" not in recorded_program.part.diagnostics


def test_vllm_an_id_may_be_used_again_after_its_request_has_ended(record):
    program = VLLM_PROGRAM + "s = Scheduler()\nfor _ in range(3):\n    s.add_request(Request('a', 4, 2))\n    serve(s)"
    recorded_program = record(program)
    assert len(recorded_program.part.of("request")) == 3
    assert (
        captured_entries(recorded_program, "vLLM")["a"] == [Entry(4, 0, 1, 0, 4, 0), Entry(0, 0, 1, 0, 5, FINISHED)] * 3
    )


def test_vllm_an_engine_that_dies_leaves_the_steps_before(record):
    program = (
        VLLM_PROGRAM + "s = Scheduler()\ns.add_request(Request('a', 4, 9))\nstep(s)\ns.schedule()\nraise SystemExit(3)"
    )
    assert captured_entries(record(program, code=3), "vLLM")["a"] == [Entry(4, 0, 1, 0, 4, 0)]


def test_vllm_steps_that_complete_out_of_order_or_twice_or_never(record):
    program = (
        VLLM_PROGRAM
        + """
s = AsyncScheduler()
s.add_request(Request('a', 4, 40))
outputs = [s.schedule() for _ in range(3)]
for index in (1, 0, 0):
    s.update_from_output(outputs[index], run_model(s, outputs[index]))
for _ in range(100):
    s.schedule()  # forgotten by the engine
print('done')
"""
    )
    recorded_program = record(program)
    entries = captured_entries(recorded_program, "vLLM")["a"]
    assert recorded_program.out == "done\n"
    assert sorted(entry.prompt for entry in entries) == [0, 4]


def test_two_vllm_schedulers_in_a_process_do_not_share_requests(record):
    program = (
        VLLM_PROGRAM + "for _ in range(2):\n    s = Scheduler()\n    s.add_request(Request('0', 4, 9))\n    step(s)"
    )
    assert list(captured_entries(record(program), "vLLM")) == ["0", "engine1-0"]


def test_an_unknown_shape_of_vllm_switches_the_adapter_off_once(record):
    program = (
        VLLM_PROGRAM
        + """
import vllm.v1.core.sched.scheduler as module
module.NewRequestData = lambda id, start: SimpleNamespace(req_id=id)
s = Scheduler()
s.add_request(Request('a', 4, 3))
serve(s)
print(len(s.requests))
"""
    ).replace("import sys\n", "import sys\nfrom types import SimpleNamespace\n", 1)
    recorded_program = record(program)
    assert recorded_program.out == "0\n"
    (diagnostic,) = [line for line in recorded_program.part.of("diagnostic") if line.startswith("engine_not_captured")]
    assert "vLLM" in diagnostic and "num_computed_tokens" in diagnostic
    assert recorded_program.part.of("in-step") == []


def test_a_scheduler_that_does_not_schedule_with_vllms_is_reported(record):
    program = (
        VLLM_PROGRAM
        + """
class Own(Scheduler):
    schedule = Scheduler.schedule.__wrapped__
s = Own()
s.add_request(Request('a', 4, 100))
serve(s)
print(len(s.requests))
"""
    )
    recorded_program = record(program)
    assert recorded_program.out == "0\n"
    assert "Own does not call" in " ".join(recorded_program.part.of("diagnostic"))


def test_a_vllm_without_the_wrapped_functions_runs_on(record, tmp_path):
    folder = tmp_path / "vllm" / "v1" / "core" / "sched"
    folder.mkdir(parents=True)
    (folder / "scheduler.py").write_text("class Scheduler:\n    def schedule(self): return 1\n")
    program = f"import sys; sys.path.insert(0, {str(tmp_path)!r})\n"
    recorded_program = record(
        program + "from vllm.v1.core.sched.scheduler import Scheduler\nprint(Scheduler().schedule())"
    )
    assert recorded_program.out == "1\n"
    assert recorded_program.part.diagnostics == ["engine_not_captured"]


def test_the_plugin_of_vllm_installs_the_adapter_where_sitecustomize_does_not_run(record):
    program = (
        "import sys; sys.meta_path.pop(0)  # the finder of sitecustomize\n"
        + VLLM_PROGRAM
        + "import types, os\nsys.modules['vllm.v1.engine.core'] = types.ModuleType('core')\n"
        + "sys.path.append(os.environ['TEST_PACKAGES'])\n"
        + "from joulemap._engine_plugin import install_vllm_adapter\ninstall_vllm_adapter()\ninstall_vllm_adapter()\n"
        + "s = Scheduler()\ns.add_request(Request('a', 4, 1))\nserve(s)"
    )
    recorded_program = record(program, TEST_PACKAGES=str(PACKAGES_FOLDER))
    assert captured_entries(recorded_program, "vLLM")["a"] == [Entry(4, 0, 1, 0, 4, FINISHED)]


def test_the_wheel_declares_the_plugins():
    entry_points = configparser.ConfigParser()
    entry_points.read_string(make_wheel.ENTRY_POINTS)
    plugin = (ROOT / "python" / "joulemap" / "_engine_plugin.py").read_text()
    functions = {"vllm.general_plugins": "install_vllm_adapter", "sglang.srt.plugins": "install_sglang_adapter"}
    for group, function in functions.items():
        assert entry_points[group]["joulemap"] == f"joulemap._engine_plugin:{function}"
        assert f"def {function}() -> None:" in plugin


def test_outside_of_a_recording_the_plugins_do_nothing(python):
    program = """
from joulemap import _engine_plugin
sys.modules["vllm.v1.engine.core"] = sys.modules["sglang.srt.managers.scheduler"] = None
_engine_plugin.install_vllm_adapter()
_engine_plugin.install_sglang_adapter()
print(json.dumps([name for name in sys.modules if name.startswith("joulemap._") and "capture" in name]))
"""
    assert python(program) == []


def test_sglang_chunked_prefill_radix_cache_and_mixed_batches(record):
    program = (
        SGLANG_PROGRAM
        + """
s = Scheduler()
a, b = Req('a', 20, 4), Req('b', 12, 2)
b.prefix_hit = 8
step(s, s.extend((a, 16)))
step(s, s.extend((a, 4)))
step(s, s.extend((b, 4), mixed=(a,)))
step(s, s.decode(a, b))
step(s, ScheduleBatch([], ForwardMode.IDLE))
step(s, s.decode(a))
"""
    )
    recorded_program = record(program)
    entries = captured_entries(recorded_program, "SGLang")
    assert entries["a"] == [
        Entry(16, 0, 0, 0, 16, 0), Entry(4, 0, 1, 0, 20, 0), Entry(0, 0, 1, 0, 21, 0), Entry(0, 0, 1, 0, 22, 0),
        Entry(0, 0, 1, 0, 23, FINISHED),
    ]  # fmt: skip
    assert entries["b"] == [Entry(4, 8, 1, 0, 12, 0), Entry(0, 0, 1, 0, 13, FINISHED)]
    assert read_request_models(recorded_program.part) == {"a": "tiny", "b": "tiny"}
    assert recorded_program.part.steps in (5, 6)


def test_sglang_overlapped_steps_speculation_and_ends(record):
    program = (
        SGLANG_PROGRAM
        + """
s = Scheduler(accepted=1, draft_tokens=4)
a = Req('a', 6, 5)
batches = [s.extend((a, 6)), s.decode(a), s.decode(a), s.decode(a)]
queue = []
for batch in batches:
    queue.append((batch.copy(), s.run_batch(batch)))
    if len(queue) > 1:
        s.process_batch_result(*queue.pop(0))
s.process_batch_result(*queue.pop(0))
"""
    )
    recorded_program = record(program)
    assert captured_entries(recorded_program, "SGLang")["a"] == [
        Entry(6, 0, 1, 0, 6, 0), Entry(0, 0, 2, 2, 8, 0), Entry(0, 0, 2, 2, 10, 0), Entry(0, 0, 0, 4, 10, FINISHED),
    ]  # fmt: skip


def test_sglang_retraction_and_aborts(record):
    program = (
        SGLANG_PROGRAM
        + """
s = Scheduler()
a, b, c = Req('a', 6, 9), Req('b', 6, 9), Req('c', 6, 9)
step(s, s.extend((a, 6), (b, 6), (c, 6)))
step(s, s.decode(a, b, c))
s.retract(b)
s.retract(c)
s.abort_request(SimpleNamespace(rid='c', abort_all=False, running=[]))
s.waiting_queue.remove(b)
step(s, s.extend((b, 8)))
s.abort_request(SimpleNamespace(rid='a', abort_all=False, running=[a]))
step(s, s.decode(a))
"""
    )
    entries = captured_entries(record(program), "SGLang")
    assert [entry.events for entry in entries["c"]] == [0, 0, ABORTED]
    assert entries["b"][2:] == [Entry(0, 0, 0, 0, 7, PREEMPTED), Entry(8, 0, 1, 0, 8, 0)]
    assert entries["a"][-1] == Entry(0, 0, 1, 0, 8, ABORTED)


def test_sglang_other_ranks_of_tensor_parallelism_report_nothing(record):
    program = (
        SGLANG_PROGRAM + "s = Scheduler(rank=1)\na = Req('a', 4, 1)\nstep(s, s.extend((a, 4)))\nprint(a.finished())"
    )
    recorded_program = record(program)
    assert recorded_program.out == "True\n"
    assert read_request_entries(recorded_program.part) == {}


def test_sglang_a_failed_forward_is_no_step(record):
    program = (
        SGLANG_PROGRAM
        + """
s = Scheduler()
a = Req('a', 4, 2)
step(s, s.extend((a, 4)))
try:
    s.run_batch(s.decode(a), 'no such argument')
except TypeError:
    print('failed')
step(s, s.decode(a))
"""
    )
    recorded_program = record(program)
    assert recorded_program.out == "failed\n"
    assert captured_entries(recorded_program, "SGLang")["a"] == [
        Entry(4, 0, 1, 0, 4, 0),
        Entry(0, 0, 1, 0, 5, FINISHED),
    ]


def test_generate_calls_of_two_threads_with_one_model_do_not_mix(record):
    program = (
        GENERATE_PROGRAM
        + """
import pickle
a_began, b_began, a_ended = threading.Event(), threading.Event(), threading.Event()

def forward_of_a(index):
    if index == 0:
        a_began.set()
        assert b_began.wait(60)

def forward_of_b(index):
    if index == 0:
        b_began.set()
        assert a_ended.wait(60)

def a():
    model.generate(prompts(5), forward=forward_of_a)
    a_ended.set()

def b():
    assert a_began.wait(60)
    model.generate(prompts(7), forward=forward_of_b)

threads = [threading.Thread(target=target) for target in (a, b)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
model.generate(prompts(9))
print(vars(model), type(pickle.loads(pickle.dumps(model))).__name__)
"""
    )
    recorded_program = record(program)
    assert recorded_program.out == "{} Model\n"
    entries = captured_entries(recorded_program, "transformers generate")
    assert {id: [entry.context for entry in request_entries] for id, request_entries in entries.items()} == {
        "generate-0-0": [5, 6, 7], "generate-1-0": [7, 8, 9], "generate-2-0": [9, 10, 11],
    }  # fmt: skip
    assert all([entry.events for entry in request_entries] == [0, 0, FINISHED] for request_entries in entries.values())


def test_generate_reports_the_forward_passes_of_a_subclass_and_of_a_model_with_its_own_function_once(record):
    program = (
        GENERATE_PROGRAM
        + """
class Derived(Model):
    def prepare_inputs_for_generation(self, input_ids, **kwargs):
        return super().prepare_inputs_for_generation(input_ids, **kwargs)

model.generate(prompts(4))
derived = Derived()
derived.generate(prompts(5))
own = derived.prepare_inputs_for_generation = lambda input_ids, **kwargs: {"input_ids": input_ids}
derived.generate(prompts(6), forward=lambda index: index or derived.generate(prompts(8), steps=1))
print(derived.prepare_inputs_for_generation is own, list(vars(derived)))

def replace(index):
    derived.prepare_inputs_for_generation = own = lambda input_ids, **kwargs: {"input_ids": input_ids}

derived.generate(prompts(7), forward=replace)
print("__wrapped__" in vars(derived.prepare_inputs_for_generation))
"""
    )
    recorded_program = record(program)
    assert recorded_program.out == "True ['prepare_inputs_for_generation']\nFalse\n"
    entries = captured_entries(recorded_program, "transformers generate")
    assert {
        id: [entry.prompt for entry in request_entries]
        for id, request_entries in entries.items() if id != "generate-2-0"
    } == {
        "generate-0-0": [4, 0, 0], "generate-1-0": [5, 0, 0], "generate-3-0": [7],
    }  # fmt: skip


def test_a_generate_that_raises_aborts_its_requests(record):
    program = (
        GENERATE_PROGRAM
        + """
def fail(index):
    if index == 1:
        raise KeyboardInterrupt("stop")

try:
    model.generate(prompts(5, sequences=2), forward=fail)
except KeyboardInterrupt as error:
    print(error)
model.generate(prompts(5), steps=1)
"""
    )
    recorded_program = record(program)
    assert recorded_program.out == "stop\n"
    entries = captured_entries(recorded_program, "transformers generate")
    for number in (0, 1):
        assert [entry.events for entry in entries[f"generate-0-{number}"]] == [0, ABORTED]
    assert [entry.events for entry in entries["generate-1-0"]] == [FINISHED]


def test_a_float_mask_of_generate_is_read_and_padding_is_not_part_of_chunks(record):
    program = (
        GENERATE_PROGRAM
        + """
mask = torch.ones(2, 10)
mask[1, :4] = 0
model.generate(prompts(10, sequences=2), attention_mask=mask, chunk=4, steps=2)
"""
    )
    entries = captured_entries(record(program), "transformers generate")
    assert [entry.prompt for entry in entries["generate-0-0"]] == [4, 4, 2, 0]
    # The first chunk of the second sequence is padding only.
    assert [entry.prompt for entry in entries["generate-0-1"]] == [4, 2, 0]
    assert [entry.context for entry in entries["generate-0-1"]] == [8, 10, 11]


def test_tokens_in_a_cache_that_generate_receives_are_cached(record):
    program = (
        GENERATE_PROGRAM
        + """
mask = torch.ones(1, 10, dtype=torch.int64)
mask[0, :2] = 0
model.generate(prompts(10), attention_mask=mask, past_key_values=Cache(6), steps=2)
model.generate(prompts(4), attention_mask=mask, past_key_values=Cache(6), steps=1)
model.generate(prompts(10), past_key_values=Cache(6), steps=1)
"""
    )
    entries = captured_entries(record(program), "transformers generate")
    assert entries["generate-0-0"] == [Entry(4, 4, 1, 0, 10, 0), Entry(0, 0, 1, 0, 11, FINISHED)]
    assert entries["generate-1-0"] == [Entry(4, 4, 1, 0, 10, FINISHED)]
    assert entries["generate-2-0"] == [Entry(4, 6, 1, 0, 10, FINISHED)]


def test_a_fault_in_the_hooks_of_generate_switches_only_them_off(record):
    program = (
        GENERATE_PROGRAM
        + """
class Broken:
    length = 0
    def get_seq_length(self):
        raise RuntimeError("no length")

print(model.generate(prompts(4), past_key_values=Broken()), vars(model))
net = torch.nn.Linear(4, 4)
net(torch.ones(1, 4)).sum().backward()
"""
    )
    recorded_program = record(program)
    assert recorded_program.out == "tokens {}\n"
    assert recorded_program.part.diagnostics == ["engine_not_captured"]
    assert recorded_program.part.count("train", "forward", "Linear") == 1


def test_an_asynchronous_step_whose_requests_have_ended_ends_before_the_next_request_arrives(record):
    program = (
        BATCHING_PROGRAM
        + """
add("a", 5, 2)
step(update=False)
while step():
    pass
print(time.monotonic_ns())
add("b", 6, 2)
while step():
    pass
processor.inputs_and_outputs.swap_io_pairs()
processor.update_batch()
"""
    )
    recorded_program = record(program)
    entries = captured_entries(recorded_program, "transformers continuous batching")
    assert entries["batch-0-a"] == [
        Entry(5, 0, 1, 0, 5, 0), Entry(0, 0, 1, 0, 6, 0), Entry(0, 0, 0, 1, 6, FINISHED),
    ]  # fmt: skip
    assert entries["batch-0-b"] == [
        Entry(6, 0, 1, 0, 6, 0), Entry(0, 0, 1, 0, 7, 0), Entry(0, 0, 0, 1, 7, FINISHED),
    ]  # fmt: skip
    times = [tuple(map(int, line.split()[1:3])) for line in recorded_program.part.of("engine-step")]
    idle_ns = int(recorded_program.out)
    assert times[2][1] <= idle_ns <= times[3][0]


def test_an_asynchronous_step_in_flight_of_a_request_that_is_cancelled_or_has_not_ended(record):
    program = (
        BATCHING_PROGRAM
        + """
add("a", 5, 9)
step(update=False)
step()
state = processor.scheduler.active_requests.pop("a")
print(step())  # nothing can be scheduled
processor.scheduler.active_requests["a"] = state
step()
processor.scheduler._requests_to_cancel.add("a")
print(step())
"""
    )
    recorded_program = record(program)
    assert recorded_program.out == "False\nFalse\n"
    entries = captured_entries(recorded_program, "transformers continuous batching")
    assert [entry.decoded for entry in entries["batch-0-a"]] == [1, 1, 0]
    assert [entry.events for entry in entries["batch-0-a"]] == [0, 0, ABORTED]


def test_the_last_chunk_of_a_prompt_may_have_one_token_in_llama_cpp(record):
    program = (
        LLAMA_PROGRAM
        + """
llama.create_completion(list(range(17)), max_tokens=2)
llama.create_completion(list(range(33)), max_tokens=1)
llama.reset()
llama.eval(list(range(17)))
llama.eval([7])  # sampled without sample()
llama.eval([7])
llama.reset()
"""
    )
    entries = captured_entries(record(program), "llama-cpp-python")
    assert entries["completion-0"][:2] == [Entry(16, 0, 0, 0, 16, 0), Entry(1, 0, 1, 0, 17, 0)]
    assert [entry.prompt for entry in entries["completion-1"]][:3] == [16, 16, 1]
    assert [entry[:3] for entry in entries["eval-2"]] == [(16, 0, 0), (1, 0, 0), (0, 0, 1), (0, 0, 1)]


def test_a_genai_generator_that_dies_unrecorded_leaves_nothing_to_a_later_one(record):
    program = (
        GENAI_PROGRAM
        + """
from joulemap import _hot
from joulemap._onnxruntime_genai_capture import GeneratorRegistry, weakref

registries = []
add = GeneratorRegistry.add_generator
GeneratorRegistry.add_generator = lambda self, *args: (registries.append(self), add(self, *args))[1]
first = generator()
first.append_tokens([1, 2, 3])
is_recording, _hot.is_recording = _hot.is_recording, lambda: False
del first
print(registries[0]._sequences)
_hot.is_recording = is_recording
second = generator()
second.append_tokens([1, 2])
second.generate_next_token()
"""
    )
    recorded_program = record(program)
    assert recorded_program.out == "{}\n"
    assert captured_entries(recorded_program, "ONNX Runtime GenAI")["generator-1-0"] == [Entry(2, 0, 1, 0, 2, 0)]
