"""Encodes ONNX files byte by byte for the tests of readers, without the package onnx."""

from __future__ import annotations

from typing import Iterable, Sequence, Union

FLOAT, INT64 = 1, 7
Size = Union[int, str, None]  # a number, a symbolic name, or unknown


def varint(value: int) -> bytes:
    value &= (1 << 64) - 1
    out = b""
    while value > 0x7F:
        out += bytes([value & 0x7F | 0x80])
        value >>= 7
    return out + bytes([value])


def number(field: int, value: int) -> bytes:
    return varint(field << 3) + varint(value)


def block(field: int, content: Union[bytes, str]) -> bytes:
    content = content.encode() if isinstance(content, str) else content
    return varint(field << 3 | 2) + varint(len(content)) + content


def ints(name: str, values: Iterable[int]) -> bytes:
    """An attribute of a node."""
    return block(1, name) + b"".join(number(8, value) for value in values) + number(20, 7)


def integer(name: str, value: int) -> bytes:
    return block(1, name) + number(3, value) + number(20, 2)


def node(op: str, inputs: Sequence[str], outputs: Sequence[str], *attributes: bytes, domain: str = "") -> bytes:
    out = b"".join(block(1, name) for name in inputs) + b"".join(block(2, name) for name in outputs)
    out += block(3, f"/{op.lower()}/{op}") + block(4, op) + b"".join(block(5, one) for one in attributes)
    return out + (block(7, domain) if domain else b"")


def value(name: str, sizes: Sequence[Size]) -> bytes:
    """An input or output with its shape."""
    dims = b""
    for size in sizes:
        dims += block(1, number(1, size) if isinstance(size, int) else block(2, size) if size else b"")
    return block(1, name) + block(2, block(1, number(1, FLOAT) + block(2, dims)))


def weight(name: str, sizes: Sequence[int]) -> bytes:
    """A tensor with a shape and without data."""
    return b"".join(number(1, size) for size in sizes) + number(2, FLOAT) + block(8, name)


def integer_tensor(name: str, values: Sequence[int]) -> bytes:
    """A tensor of integers, such as the target of a reshape."""
    held = b"".join(number(7, one) for one in values)
    return number(1, len(values)) + number(2, INT64) + held + block(8, name)


def model(
    nodes: Sequence[bytes],
    inputs: Sequence[bytes],
    outputs: Sequence[bytes],
    weights: Sequence[bytes] = (),
    opset: int = 17,
) -> bytes:
    graph = b"".join(block(1, one) for one in nodes) + block(2, "made")
    graph += b"".join(block(5, one) for one in weights)
    graph += b"".join(block(11, one) for one in inputs) + b"".join(block(12, one) for one in outputs)
    return number(1, 8) + block(7, graph) + block(8, block(1, "") + number(2, opset))
