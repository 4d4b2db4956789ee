"""Reads a .joule file as docs/reference/recording-format.md describes it, without any code of Joulemap.

    python read_joule.py run.joule

Prints its contents, one line per record. Skips damaged chunks without reporting them.
"""

from __future__ import annotations

import struct
import sys
import zlib

import zstandard

MAGIC = b"\xb5J\r\n"


class FieldDecoder:
    """Decodes consecutive varints, numbers and texts."""

    def __init__(self, data: bytes) -> None:
        self.data, self.at = data, 0

    def take_bytes(self, size: int) -> bytes:
        self.at += size
        return self.data[self.at - size : self.at]

    def u8(self) -> int:
        return self.take_bytes(1)[0]

    def varint(self) -> int:
        value = shift = 0
        while True:
            byte = self.u8()
            value |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                return value

    def svarint(self) -> int:
        code = self.varint()
        return code >> 1 if code % 2 == 0 else -(code >> 1) - 1

    def f64(self) -> str:
        return repr(struct.unpack("<d", self.take_bytes(8))[0]).removesuffix(".0")

    def text(self) -> str:
        return self.take_bytes(self.varint()).decode()

    def optional(self, read):
        return read() if self.u8() else "-"

    def record(self) -> FieldDecoder:
        return FieldDecoder(self.take_bytes(self.varint()))

    def at_end(self) -> bool:
        return self.at >= len(self.data)

    def records(self) -> list[FieldDecoder]:
        return [self.record() for _ in range(self.varint())]

    def column(self, count: int) -> list[int]:
        if count == 0:
            return []
        head = self.u8()
        k, steps, grid = head & 63, head & 64, head & 128
        multiplier, divisor = (self.varint(), self.varint()) if grid else (1, 1)
        expected, slope = self.svarint(), self.svarint()
        values, bit = [], self.at * 8

        def bits(width: int) -> int:
            nonlocal bit
            bit += width
            return sum((self.data[i // 8] >> i % 8 & 1) << (i - bit + width) for i in range(bit - width, bit))

        for _ in range(count):
            ones = 0
            while ones < 16 and bits(1):
                ones += 1
            code = bits(bits(6) + 1) if ones == 16 else ones << k | bits(k)
            value = expected + (code >> 1 if code % 2 == 0 else -(code >> 1) - 1)
            expected = (value if steps else expected) + slope
            values.append(value % 2**64 * multiplier // divisor)
        self.at = (bit + 7) // 8
        return values


def wrap_to_int64(value: int) -> int:
    return (value + 2**63) % 2**64 - 2**63


def read_samples(f: FieldDecoder, source: int, first_channel: int):
    shift, base = f.u8(), f.svarint()
    clocks = f.varint()
    for monotonic, ahead in zip(f.column(clocks), f.column(clocks)):
        now = (base << shift) + monotonic
        yield f"clock {source} {wrap_to_int64(now)} {wrap_to_int64(now + ahead)}"
    previous: list[int] = []
    for _ in range(f.varint()):
        channel, count, at = first_channel + f.varint(), f.varint(), 0
        codes = [0] * count
        for _ in range(f.varint()):
            at += f.varint()
            codes[at] = f.u8()
        origin = previous if f.u8() else [base] * count
        before = [a + b for a, b in zip(f.column(count), origin)]
        previous = [a + b for a, b in zip(f.column(count), before)]
        raw_values = iter(f.column(codes.count(0)))
        for begin, end, code in zip(before, previous, codes):
            raw = 0 if code else next(raw_values)
            yield f"sample {channel} {wrap_to_int64(begin << shift)} {wrap_to_int64(end << shift)} {code} {raw}"


def read_source(f: FieldDecoder, source: int, first_channel: int) -> list[str]:
    r = f.record()
    head = [r.text(), r.text(), r.text(), r.svarint(), r.svarint(), r.text()]
    command = ",".join(r.text() for _ in range(r.varint()))
    lines = [f"source {source} {' '.join(map(str, head))} {r.text()} {command}"]
    for number, c in enumerate(f.records(), first_channel):
        fields = [c.text() for _ in range(5)] + [
            c.u8(),
            c.text(),
            c.u8(),
            c.u8(),
            c.u8(),
            c.f64(),
            c.optional(c.varint),
        ]
        fields += [c.f64(), c.f64(), c.u8(), c.text(), c.f64(), c.f64()]
        lines.append(f"channel {number} {source} " + " ".join(map(str, fields)))
    return lines


def read_events(f: FieldDecoder, source: int):
    for r in f.records():
        yield f"mark {source} {r.svarint()} {r.u8()} {r.varint()} {r.varint()} {r.text()}"
    for r in f.records():
        yield f"metric {source} {r.svarint()} {r.optional(r.svarint)} {r.text()} {r.f64()}"


def read_facts(f: FieldDecoder, source: int):
    for r in f.records():
        yield f"fact {source} {r.text()} {r.text()}"
    for r in f.records():
        fields = [r.text(), r.text(), r.text(), *(r.optional(r.f64) for _ in range(3)), r.text()]
        fields += [r.optional(r.f64) for _ in range(3)] + [r.svarint()]
        if not r.at_end():  # response to a load, where calibrate measured it
            response = [r.optional(r.f64) for _ in range(13)] + [r.text()]
            fields += response if set(response) - {"-", ""} else []
        yield f"calibration {source} " + " ".join(map(str, fields))


def read_shifted_column(f: FieldDecoder, count: int, shift: int) -> list[int]:
    return [wrap_to_int64(value << shift) for value in f.column(count)]


def read_names(f: FieldDecoder, source: int):
    for r in f.records():
        yield f"place {source} {r.varint()} {r.varint()} {r.u8()} {r.text()}"
    for r in f.records():
        fields = [r.varint(), r.u8(), *(r.varint() for _ in range(6))]
        yield f"class {source} {' '.join(map(str, fields))} {r.text()}"
    for r in f.records():
        number, device = r.varint(), r.text()
        yield f"queue {source} {number} {r.varint()} {r.varint()} {r.varint()} {device}"


def read_kernels(f: FieldDecoder, source: int, base: int, shift: int):
    count = f.varint()
    classes, queues, places = ([f.varint() for _ in range(count)] for _ in range(3))
    correlations, last = [], 0
    for _ in range(count):
        last += f.svarint()
        correlations.append(last % 2**32)
    sizes = [f.varint() for _ in range(count)]
    durations: dict[tuple[int, int], int] = {}
    end = base >> shift
    for i, (gap, change) in enumerate(zip(f.column(count), f.column(count))):
        key = classes[i], places[i]
        durations[key] = (durations.get(key, 0) + change) % 2**64
        start, end = end + gap, end + gap + durations[key]
        times = f"{wrap_to_int64(start << shift)} {wrap_to_int64(end << shift)}"
        yield f"kernel {source} {times} {classes[i]} {queues[i]} {places[i]} {correlations[i]} {sizes[i]}"


def read_activity(f: FieldDecoder, source: int):
    shift, begin, end = f.u8(), f.svarint(), f.svarint()
    yield from read_names(f, source)
    count = f.varint()
    places, entries, sampled = ([f.varint() for _ in range(count)] for _ in range(3))
    times = [read_shifted_column(f, count, shift) for _ in range(3)]
    for row in zip(places, entries, *times, sampled):
        yield f"time {source} {begin} {end} {' '.join(map(str, row))}"
    count = f.varint()
    columns = [[f.varint() for _ in range(count)] for _ in range(4)]
    for row in zip(*columns, read_shifted_column(f, count, shift)):
        yield f"kernels {source} {begin} {end} {' '.join(map(str, row))}"
    count = f.varint()
    flags = [f.u8() for _ in range(count)]
    shapes, kernels = ([f.varint() for _ in range(count)] for _ in range(2))
    numbers = read_shifted_column(f, count, 0)
    for row in zip(numbers, *(read_shifted_column(f, count, shift) for _ in range(3)), shapes, kernels, flags):
        yield f"step {source} {' '.join(map(str, row))}"
    yield from read_kernels(f, source, begin, shift)
    count = f.varint()
    columns = [[f.varint() for _ in range(count)] for _ in range(3)]
    for row in zip(*columns, read_shifted_column(f, count, shift)):
        yield f"share {source} {' '.join(map(str, row))}"


def read_powers(f: FieldDecoder, source: int):
    for r in f.records():
        fields = [r.text(), r.u8(), r.text(), r.varint(), *(r.f64() for _ in range(8)), r.varint()]
        yield f"power {source} " + " ".join(map(str, fields))


def read_engine_steps(f: FieldDecoder, source: int):
    for r in f.records():
        yield f"request {source} {r.varint()} {r.text()} {r.text()} {r.text()}"
    n = f.varint()
    begins, durations = f.column(n), f.column(n)
    counts = [f.varint() for _ in range(n)]
    m = f.varint()
    request, requests = 0, []
    for _ in range(m):
        request += f.svarint()
        requests.append(request)
    prompt, cached, decoded, rejected = ([f.varint() for _ in range(m)] for _ in range(4))
    last: dict[int, int] = {}
    contexts = []
    for i, request in enumerate(requests):
        last[request] = last.get(request, 0) + prompt[i] + cached[i] + decoded[i] + f.svarint()
        contexts.append(last[request])
    events = [f.u8() for _ in range(m)]
    entry = 0
    for begin, duration, count in zip(begins, durations, counts):
        begin = wrap_to_int64(begin)
        yield f"engine-step {source} {begin} {begin + wrap_to_int64(duration)} {count}"
        for i in range(entry, entry + count):
            fields = (requests[i], prompt[i], cached[i], decoded[i], rejected[i], contexts[i], events[i])
            yield f"in-step {source} " + " ".join(map(str, fields))
        entry += count


def read_end(f: FieldDecoder, source: int):
    r = f.record()
    yield f"end {source} {r.optional(r.svarint)} {r.optional(r.svarint)} {r.f64()} {r.varint()} {r.varint()}"
    for d in f.records():
        yield f"diagnostic {d.text()} {d.varint()} {d.text()} {d.text()}"


def iterate_chunks(data: bytes):
    """Type, source number and payload of every complete chunk."""
    at = 0
    while (at := data.find(MAGIC, at)) >= 0:
        header = data[at : at + 24]
        if len(header) < 24 or zlib.crc32(header[:20]) != struct.unpack_from("<I", header, 20)[0]:
            at += 1
            continue
        assert header[4] == 1, f"version {header[4]}.{header[5]}"
        stored_size, decompressed_size = (
            int.from_bytes(header[10:13], "little"),
            int.from_bytes(header[13:16], "little"),
        )
        stored = data[at + 24 : at + 24 + stored_size]
        if zlib.crc32(stored) != struct.unpack_from("<I", header, 16)[0]:
            at += 4
            continue
        compressed = header[7] & 2
        payload = (
            zstandard.ZstdDecompressor().decompress(stored, max_output_size=decompressed_size) if compressed else stored
        )
        yield header[6], struct.unpack_from("<H", header, 8)[0], payload
        at += 24 + stored_size


def dump(data: bytes) -> list[str]:
    lines: list[str] = []
    first_channels: dict[int, int] = {}
    readers = {3: read_events, 4: read_facts, 5: read_end, 7: read_activity, 8: read_powers, 9: read_engine_steps}
    for kind, source, payload in iterate_chunks(data):
        if kind == 1 and source not in first_channels:
            first_channels[source] = sum(line.startswith("channel ") for line in lines)
            lines += read_source(FieldDecoder(payload), source, first_channels[source])
        elif kind == 2:
            lines += read_samples(FieldDecoder(payload), source, first_channels[source])
        elif kind in readers:
            lines += readers[kind](FieldDecoder(payload), source)
    return lines


if __name__ == "__main__":
    with open(sys.argv[1], "rb") as file:
        print("\n".join(dump(file.read())))
