"""Encodes ONNX files byte by byte for the tests of readers, without the package onnx."""

from __future__ import annotations

from typing import Iterable, Sequence, Union

FLOAT_TYPE, INT64_TYPE = 1, 7
Dimension = Union[int, str, None]  # a number, a symbolic name, or unknown


def varint(value: int) -> bytes:
    value &= (1 << 64) - 1
    out = b""
    while value > 0x7F:
        out += bytes([value & 0x7F | 0x80])
        value >>= 7
    return out + bytes([value])


def number_field(field: int, value: int) -> bytes:
    return varint(field << 3) + varint(value)


def bytes_field(field: int, content: Union[bytes, str]) -> bytes:
    content = content.encode() if isinstance(content, str) else content
    return varint(field << 3 | 2) + varint(len(content)) + content


def integers_attribute(name: str, values: Iterable[int]) -> bytes:
    """An attribute of a node."""
    return bytes_field(1, name) + b"".join(number_field(8, value) for value in values) + number_field(20, 7)


def integer_attribute(name: str, value: int) -> bytes:
    return bytes_field(1, name) + number_field(3, value) + number_field(20, 2)


def node(op: str, inputs: Sequence[str], outputs: Sequence[str], *attributes: bytes, domain: str = "") -> bytes:
    out = b"".join(bytes_field(1, name) for name in inputs) + b"".join(bytes_field(2, name) for name in outputs)
    out += (
        bytes_field(3, f"/{op.lower()}/{op}")
        + bytes_field(4, op)
        + b"".join(bytes_field(5, attribute_bytes) for attribute_bytes in attributes)
    )
    return out + (bytes_field(7, domain) if domain else b"")


def value(name: str, sizes: Sequence[Dimension]) -> bytes:
    """An input or output with its shape."""
    dims = b""
    for size in sizes:
        dims += bytes_field(
            1, number_field(1, size) if isinstance(size, int) else bytes_field(2, size) if size else b""
        )
    return bytes_field(1, name) + bytes_field(2, bytes_field(1, number_field(1, FLOAT_TYPE) + bytes_field(2, dims)))


def weight_tensor(name: str, sizes: Sequence[int]) -> bytes:
    """A tensor with a shape and without data."""
    return b"".join(number_field(1, size) for size in sizes) + number_field(2, FLOAT_TYPE) + bytes_field(8, name)


def integer_tensor(name: str, values: Sequence[int]) -> bytes:
    """A tensor of integers, such as the target of a reshape."""
    encoded_values = b"".join(number_field(7, value) for value in values)
    return number_field(1, len(values)) + number_field(2, INT64_TYPE) + encoded_values + bytes_field(8, name)


def model(
    nodes: Sequence[bytes],
    inputs: Sequence[bytes],
    outputs: Sequence[bytes],
    weights: Sequence[bytes] = (),
    opset: int = 17,
) -> bytes:
    graph = b"".join(bytes_field(1, node_bytes) for node_bytes in nodes) + bytes_field(2, "made")
    graph += b"".join(bytes_field(5, weight_bytes) for weight_bytes in weights)
    graph += b"".join(bytes_field(11, value_bytes) for value_bytes in inputs) + b"".join(
        bytes_field(12, value_bytes) for value_bytes in outputs
    )
    return number_field(1, 8) + bytes_field(7, graph) + bytes_field(8, bytes_field(1, "") + number_field(2, opset))
