"""Writes kernel libraries as docs/reference/recording-format.md describes them, without any code of Joulemap."""

from __future__ import annotations

import struct
import zlib
from dataclasses import dataclass
from pathlib import Path


@dataclass
class KernelPower:
    """Power of a kernel class in watts, with the relative standard deviation of one recording's estimate."""

    gpu: str
    name: str
    size: int
    watts: float
    spread: float = 0.03
    blocks: float = 1000
    threads_per_block: float = 256
    recordings: int = 3
    kind: int = 0

    def record(self) -> bytes:
        precision = self.recordings / self.spread**2
        numbers = [self.blocks, self.threads_per_block, 1e-4, self.watts, precision, precision / self.spread**2, 0, 10]
        fields = encode_text(self.gpu) + bytes([self.kind]) + encode_text(self.name) + varint(self.size)
        return fields + struct.pack("<8d", *numbers) + varint(self.recordings)


def varint(value: int) -> bytes:
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes(out + bytes([value]))


def encode_text(value: str) -> bytes:
    return varint(len(value.encode())) + value.encode()


def encode_list(items: list[bytes]) -> bytes:
    return varint(len(items)) + b"".join(varint(len(item)) + item for item in items)


def encode_chunk(kind: int, payload: bytes) -> bytes:
    sizes = len(payload).to_bytes(3, "little") * 2
    head = b"\xb5J\r\n" + bytes([1, 2, kind, kind in (1, 2)]) + struct.pack("<H", 0) + sizes
    head += struct.pack("<I", zlib.crc32(payload))
    return head + struct.pack("<I", zlib.crc32(head)) + payload


def write_library(path: Path, powers: list[KernelPower]) -> Path:
    source = (
        encode_text("library")
        + encode_text("host")
        + encode_text("boot")
        + varint(2)
        + varint(2)
        + encode_text("library")
        + varint(0)
        + encode_text("1")
    )
    who = encode_chunk(1, varint(len(source)) + source + varint(0))
    fields = bytes([0, 0]) + struct.pack("<d", 0) + varint(0) + varint(0)
    end = encode_chunk(5, varint(len(fields)) + fields + varint(0))
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(who + encode_chunk(8, encode_list([power.record() for power in powers])) + end)
    return path
