"""How layers of the same class are distinguished, and that capturing them leaves no trace in the program."""

from __future__ import annotations

from recorded_program import run_without_joulemap

PROGRAM_PRELUDE = """
import copy, gc, hashlib, io, pickle, weakref
import torch, torch.nn as nn, torch.nn.functional as F
from joulemap import _capture
torch.manual_seed(0)
x = torch.ones(2, 4, requires_grad=True)
"""


def test_models_of_one_class_stay_apart_and_shared_layers_keep_one_name(record):
    part = record(
        PROGRAM_PRELUDE
        + """
first, second = nn.Linear(4, 4), nn.Linear(4, 4)
class Twice(nn.Module):
    def __init__(self):
        super().__init__()
        self.a = self.b = nn.Linear(4, 4)
        self.c = nn.Linear(4, 4)
    def forward(self, x):
        return self.c(self.b(self.a(x)))
second(first(x))
model = Twice()
model(model(x)).sum().backward()
model.c(x)
"""
    ).part
    assert part.count("train", "forward", "Linear") == 1
    assert part.count("train", "forward", "Linear#2") == 1
    assert part.count("train", "forward", "Twice", "a") == 4
    assert part.count("train", "forward", "Twice", "c") == 3
    assert part.count("train", "backward", "Twice", "c") == 2
    assert part.diagnostics == []


def test_a_model_first_called_in_parts_is_named_by_the_whole_model_later(record):
    part = record(
        PROGRAM_PRELUDE
        + """
encoder = nn.Sequential(nn.Linear(4, 4))
encoder(x)
class Whole(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder = encoder
    def forward(self, x):
        return self.encoder(x)
whole = Whole()
whole(x)
encoder(x)
whole.encoder.append(nn.ReLU())
whole(x)
torch.nn.DataParallel(whole)(x)
"""
    ).part
    assert part.count("train", "forward", "Sequential", "0") == 1
    assert part.count("train", "forward", "Whole", "encoder", "encoder.0") == 4
    assert part.count("train", "forward", "Whole", "encoder", "encoder.1") == 2
    assert part.diagnostics == []


def test_a_model_made_anew_in_every_step_takes_the_place_of_the_last(record):
    part = record(PROGRAM_PRELUDE + "for _ in range(5):\n    nn.Linear(4, 4)(x)\n").part
    assert part.count("train", "forward", "Linear") == 5
    assert part.count("train", "forward", "Linear#2") == 0


def test_nothing_is_written_into_modules_and_nothing_keeps_them(record, tmp_path):
    program = """
import copy, gc, hashlib, io, pickle, weakref
import torch, torch.nn as nn
torch.manual_seed(0)
model = nn.Sequential(nn.Linear(4, 4), nn.Sequential(nn.ReLU(inplace=True)))
before = pickle.dumps(model)  # holds addresses of storages: not to be compared with another process's
model(torch.ones(2, 4)).sum().backward()
model.zero_grad()
assert pickle.dumps(model) == before
for saved in (model, copy.deepcopy(model), model.state_dict()):
    file = io.BytesIO()
    torch.save(saved, file)
    print(hashlib.sha256(file.getvalue()).hexdigest())
gone = weakref.ref(model[0]), weakref.ref(model)
del model
gc.collect()
print([reference() for reference in gone])
"""
    unrecorded_process = run_without_joulemap(tmp_path / "alone", program)
    assert unrecorded_process.returncode == 0, unrecorded_process.stderr
    recorded_program = record(program)
    assert recorded_program.out == unrecorded_process.stdout
    assert "[None, None]" in recorded_program.out
    assert recorded_program.part.count("train", "checkpoint_save") >= 3


def test_the_programs_own_hooks_still_run(record):
    recorded_program = record(
        PROGRAM_PRELUDE
        + """
results = []
model = nn.Sequential(nn.Linear(4, 4), nn.Linear(4, 2))
model[0].register_forward_pre_hook(lambda m, i: results.append("pre"))
model[0].register_forward_hook(lambda m, i, o: o * 2)
model[1].register_full_backward_hook(lambda m, gi, go: results.append("full backward"))
nn.modules.module.register_module_forward_hook(lambda m, i, o: results.append("global"))
out = model(x)
out.grad_fn.register_prehook(lambda g: results.append("node"))
out.register_hook(lambda g: results.append("tensor"))
out.sum().backward()
print(results)
"""
    )
    assert recorded_program.out.strip() == str(["pre", "global", "global", "global", "tensor", "node", "full backward"])
    assert recorded_program.part.diagnostics == []


def test_an_exception_leaves_the_scope_in_which_it_was_raised(record):
    recorded_program = record(
        PROGRAM_PRELUDE
        + """
class Fails(nn.Module):
    def __init__(self, error):
        super().__init__()
        self.inner, self.error = nn.Linear(4, 4), error
    def forward(self, x):
        self.inner(x)
        raise self.error
class FailsBackward(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x): return x * 2
    @staticmethod
    def backward(ctx, g): raise ValueError("in backward")
class FailingSGD(torch.optim.SGD):
    def step(self, closure=None): raise ValueError("in step")

def attempt(function, *errors):
    try:
        function()
    except errors or ValueError:
        print(_capture.depth(), _capture.current_scope(), _capture.is_on())
    else:
        print("no error")

good = nn.Sequential(nn.Linear(4, 4))
attempt(lambda: Fails(ValueError("in forward"))(x))
attempt(lambda: nn.Sequential(nn.Linear(4, 4), Fails(ValueError()))(x))
attempt(lambda: FailsBackward.apply(good(x)).sum().backward())
attempt(lambda: FailingSGD(good.parameters(), lr=1).step())
attempt(lambda: torch.load("nothing"), FileNotFoundError)
class Interrupted(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner, self.interrupts = nn.Linear(4, 4), True
    def forward(self, x):
        if self.interrupts: raise KeyboardInterrupt
        return self.inner(x)
model = Interrupted()
for _ in range(2):
    attempt(lambda: nn.Sequential.__call__(model, x), KeyboardInterrupt)
model.interrupts = False
for _ in range(2):
    model(x).sum().backward()
print(_capture.depth(), _capture.is_on())
"""
    )
    lines = recorded_program.out.splitlines()
    assert lines[:5] == ["0 0 True"] * 5, recorded_program.out
    assert lines[-1] == "1 True"
    assert recorded_program.part.diagnostics == []
    assert recorded_program.part.count("train", "backward", "Interrupted", "inner") == 2
