# SPDX-License-Identifier: Apache-2.0
"""The wrapper around jax.jit behaves like the original, and compiled programs name the origin of their instructions."""

from __future__ import annotations

import subprocess
import sys

import pytest

USES_PROGRAM = """
import copy, functools, pickle
import jax, jax.numpy as jnp
from jax import export

@jax.jit
def double(x):
    return 2 * x

@functools.partial(jax.jit, static_argnames="power")
def raised(x, power):
    return double(x) ** power

class Layer:
    @jax.jit
    def __call__(self, x):
        return x + 1

jax.tree_util.register_pytree_node(Layer, lambda layer: ((), None), lambda data, children: Layer())
x = jnp.arange(4.0)
assert type(double).__name__ == {expected!r}, type(double)
assert double.__name__ == "double" and double.__wrapped__(3) == 6
assert raised(x, power=2).tolist() == [0.0, 4.0, 16.0, 36.0]
assert jax.vmap(double)(x).tolist() == jax.jit(jax.vmap(double))(x).tolist()
assert jax.grad(lambda x: double(x).sum())(x).tolist() == [2.0] * 4
assert double.lower(x).compile()(x).tolist() == double(x).tolist()
assert export.export(double)(x).fun_name == "double"
assert Layer()(x).tolist() == [1.0, 2.0, 3.0, 4.0]
assert copy.copy(double)(x).tolist() == double(x).tolist()
try:
    double("text")
except TypeError:
    print("as ever")
"""


@pytest.mark.parametrize("is_recorded", [False, True])
def test_the_result_of_jit_can_be_used_unchanged(joulemap, tmp_path, is_recorded):
    program = tmp_path / "uses.py"
    program.write_text(USES_PROGRAM.format(expected="TracedJit" if is_recorded else "PjitFunction"))
    if is_recorded:
        run = joulemap("record", "-o", tmp_path / "run.joule", "--", sys.executable, program)
        assert run.code == 0, run.err
        program_output = run.out
    else:
        command = [sys.executable, str(program)]
        program_output = subprocess.run(command, capture_output=True, text=True, timeout=300, check=True).stdout
    assert program_output == "as ever\n"


HLO = """
import sys
sys.path.insert(0, {package!r})
import jax, jax.numpy as jnp
from joulemap._jax_programs import parse_hlo_operations

def step(w, x):
    with jax.named_scope("Net"):
        return jnp.tanh(x @ w).sum()

text = jax.jit(jax.grad(step)).lower(jnp.ones((8, 8)), jnp.ones((8, 8))).compile().as_text()
operations = list(parse_hlo_operations(text))
assert operations, text
assert all(module == "jit_step" for module, _, _ in operations), operations
assert any("transpose(jvp(Net))" in name for _, _, name in operations), operations
assert all(instruction in text and "%" not in instruction for _, instruction, _ in operations), operations
assert list(parse_hlo_operations("no program")) == []
"""


def test_the_hlo_text_maps_instructions_to_operations(binaries, tmp_path):
    program = tmp_path / "program.py"
    program.write_text(HLO.format(package=str(binaries.parent / "python")))
    run = subprocess.run([sys.executable, str(program)], capture_output=True, text=True, timeout=300)
    assert run.returncode == 0, run.stderr
