"""export to files: pprof, Perfetto, speedscope, folded stacks, CSV, SQLite, read by independent readers."""

from __future__ import annotations

import csv
import gzip
import io
import json
import sqlite3
from collections import Counter
from pathlib import Path

import pytest
from made_training import STEPS, made, load_report  # noqa: F401  fixtures


@pytest.fixture
def exported(joulemap, made, tmp_path):
    """exported(format, *options): the file that an export writes."""

    def write(export_format: str, *options: str) -> Path:
        export_outcome = joulemap("export", made, "--to", export_format, *options, "-o", tmp_path / export_format)
        assert export_outcome.code == 0, export_outcome.err
        return tmp_path / export_format

    return write


def total_energy_j(report: dict) -> float:
    """Total energy of the ledger: rows, idle and unattributed."""
    return sum(row["energy_j"] for row in report["rows"]) + report["idle_j"] + report["unattributed_j"]


def message_types(package: str, fields: dict[str, list[tuple]]) -> dict:
    """Message classes of the protobuf library for a schema {message: [(name, number, type, repeated, message)]}."""
    pytest.importorskip("google.protobuf")
    from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

    file = descriptor_pb2.FileDescriptorProto(name=f"{package}.proto", package=package, syntax="proto3")
    for message, members in fields.items():
        message_descriptor = file.message_type.add(name=message)
        for name, number, kind, is_repeated, message_type_name in members:
            field = message_descriptor.field.add(name=name, number=number, label=3 if is_repeated else 1)
            field.type = {"int64": 3, "uint64": 4, "string": 9, "message": 11}[kind]
            if message_type_name:
                field.type_name = f".{package}.{message_type_name}"
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return {name: message_factory.GetMessageClass(pool.FindMessageTypeByName(f"{package}.{name}")) for name in fields}


# The part of pprof's profile.proto that Joulemap writes.
PPROF_FIELDS = {
    "ValueType": [("type", 1, "int64", False, ""), ("unit", 2, "int64", False, "")],
    "Sample": [("location_id", 1, "uint64", True, ""), ("value", 2, "int64", True, "")],
    "Line": [("function_id", 1, "uint64", False, "")],
    "Location": [("id", 1, "uint64", False, ""), ("line", 4, "message", True, "Line")],
    "Function": [("id", 1, "uint64", False, ""), ("name", 2, "int64", False, "")],
    "Profile": [
        ("sample_type", 1, "message", True, "ValueType"),
        ("sample", 2, "message", True, "Sample"),
        ("location", 4, "message", True, "Location"),
        ("function", 5, "message", True, "Function"),
        ("string_table", 6, "string", True, ""),
        ("time_nanos", 9, "int64", False, ""),
        ("duration_nanos", 10, "int64", False, ""),
        ("default_sample_type", 14, "int64", False, ""),
    ],
}


def test_pprof_has_energy_time_and_calls_of_every_layer(exported, load_report):
    profile = message_types("pprof", PPROF_FIELDS)["Profile"]()
    profile.ParseFromString(gzip.decompress(exported("pprof").read_bytes()))
    texts = profile.string_table
    assert texts[0] == ""
    assert [texts[kind.type] for kind in profile.sample_type] == ["energy", "time", "calls"]
    assert texts[profile.default_sample_type] == "energy"
    names = {function.id: texts[function.name] for function in profile.function}
    places = {location.id: names[location.line[0].function_id] for location in profile.location}
    report = load_report("layer")
    assert sum(sample.value[0] for sample in profile.sample) == pytest.approx(total_energy_j(report) * 1e6, rel=1e-6)
    stacks = {tuple(places[id] for id in sample.location_id): sample.value for sample in profile.sample}
    row = next(row for row in report["rows"] if row["path"] == ["train", "forward", "blocks.1.conv1"])
    value = stacks["blocks.1.conv1", "blocks.1", "blocks", "forward", "train", "gpu0"]
    assert list(value) == [
        pytest.approx(row["energy_j"] * 1e6, abs=1),
        pytest.approx(row["time_s"] * 1e9, abs=1),
        row["count"],
    ]


def test_folded_stacks_add_up_to_the_ledger(exported, load_report):
    lines = exported("folded").read_text().splitlines()
    values = {stack: int(value) for stack, value in (line.rsplit(" ", 1) for line in lines)}
    assert len(values) == len(lines)
    assert sum(values.values()) == pytest.approx(total_energy_j(load_report("layer")) * 1e6, rel=1e-6)
    assert "gpu0;train;backward;blocks;blocks.1;blocks.1.conv1" in values
    assert any(stack.split(";")[0] == "idle" for stack in values)


def test_the_call_graph_names_every_caller(exported):
    graph = exported("dot", "--by", "layer").read_text()
    assert graph.startswith("digraph energy {") and graph.rstrip().endswith("}")
    assert '"forward" -> "blocks"' in graph or '"backward" -> "blocks"' in graph


def test_stacks_can_include_kernels(joulemap, made):
    export_outcome = joulemap("export", made, "--to", "folded", "--by", "kernel")
    assert export_outcome.code == 0 and "gpu0;gemm_32x64 " in export_outcome.out


def test_speedscope_has_a_profile_of_joules_and_one_of_time(exported, load_report):
    file = json.loads(exported("speedscope").read_text())
    assert file["$schema"] == "https://www.speedscope.app/file-format-schema.json"
    joules, seconds = file["profiles"]
    assert (joules["unit"], seconds["unit"]) == ("none", "seconds")
    for profile in (joules, seconds):
        assert profile["type"] == "sampled" and len(profile["samples"]) == len(profile["weights"])
        assert profile["endValue"] == pytest.approx(sum(profile["weights"]))
        assert all(0 <= frame < len(file["shared"]["frames"]) for stack in profile["samples"] for frame in stack)
    assert joules["endValue"] == pytest.approx(total_energy_j(load_report("layer")))


def test_csv_has_the_numbers_of_json(exported, load_report):
    table = list(csv.DictReader(io.StringIO(exported("csv", "--by", "layer").read_text(), newline="")))
    report = load_report("layer")
    assert [line["path"] for line in table[:-2]] == [" ".join(row["path"]) for row in report["rows"]]
    for line, row in zip(table, report["rows"]):
        for key in ("energy_j", "low_j", "high_j", "time_s", "power_w"):
            assert line[key] == "" if row[key] is None else float(line[key]) == pytest.approx(row[key], rel=1e-9)
    assert [line["name"] for line in table[-2:]] == ["idle", "not attributed"]


@pytest.mark.parametrize(("by", "count"), [("step", STEPS), ("epoch", 4)])
def test_csv_has_every_step_and_epoch(exported, load_report, by, count):
    table = list(csv.DictReader(io.StringIO(exported("csv", "--by", by).read_text(), newline="")))
    assert [int(line["number"]) for line in table] == list(range(count))
    assert sum(float(line["energy_j"]) for line in table) == pytest.approx(
        sum(row["energy_j"] for row in load_report(by)["rows"]), rel=1e-6
    )


def test_sqlite_contains_all_tables(exported, load_report):
    database = sqlite3.connect(exported("sqlite"))
    assert database.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    assert database.execute("SELECT count(*) FROM steps").fetchone() == (STEPS,)
    assert database.execute("SELECT count(*) FROM metrics WHERE name = 'loss'").fetchone() == (STEPS,)
    for level in ("layer", "kernel", "phase", "op"):
        (stored_energy_j,) = database.execute("SELECT sum(energy_j) FROM rows WHERE level = ?", (level,)).fetchone()
        assert stored_energy_j == pytest.approx(sum(row["energy_j"] for row in load_report(level)["rows"]), rel=1e-9)
        (waiting_energy_j,) = database.execute("SELECT sum(waiting_j) FROM rows WHERE level = ?", (level,)).fetchone()
        assert (waiting_energy_j or 0) == pytest.approx(
            sum(row["waiting_j"] or 0 for row in load_report(level)["rows"]), rel=1e-9
        )
        causes = dict(
            database.execute("SELECT cause, sum(energy_j) FROM idle WHERE level = ? GROUP BY cause", (level,))
        )
        assert sum(causes.values()) == pytest.approx(load_report(level)["idle_j"], rel=1e-9)
        assert causes["launch"] > 0
    energy_query = "SELECT sum(power_w * (end_s - begin_s)) FROM samples WHERE domain = 'gpu0'"
    (energy,) = database.execute("SELECT energy_j FROM domains WHERE name = 'gpu0'").fetchone()
    # Slices after the last reading have no power; their energy is part of the uncertainty.
    uncertain = next(domain["uncertainty_j"] for domain in load_report("domain")["domains"] if domain["name"] == "gpu0")
    assert database.execute(energy_query).fetchone()[0] == pytest.approx(energy, abs=uncertain)
    messages = {message for (message,) in database.execute("SELECT message FROM diagnostics")}
    assert any("made up" in message for message in messages)


def test_perfetto_has_power_beside_steps_and_phases(exported, load_report):
    schema = pytest.importorskip("perfetto.protos.perfetto.trace.perfetto_trace_pb2")
    trace = schema.Trace()
    trace.ParseFromString(exported("perfetto").read_bytes())
    tracks = {
        packet.track_descriptor.uuid: packet.track_descriptor
        for packet in trace.packet
        if packet.HasField("track_descriptor")
    }
    events = [packet for packet in trace.packet if packet.HasField("track_event")]
    event_counts: Counter = Counter()
    open_since_ns: dict[int, int] = {}
    for packet in events:
        event = packet.track_event
        event_counts[tracks[event.track_uuid].name, event.type] += 1
        if event.type == schema.TrackEvent.TYPE_SLICE_BEGIN:
            assert event.track_uuid not in open_since_ns
            open_since_ns[event.track_uuid] = packet.timestamp
        if event.type == schema.TrackEvent.TYPE_SLICE_END:
            assert packet.timestamp >= open_since_ns.pop(event.track_uuid)
    assert not open_since_ns
    assert event_counts["steps", schema.TrackEvent.TYPE_SLICE_BEGIN] == STEPS
    assert event_counts["epochs", schema.TrackEvent.TYPE_SLICE_BEGIN] == 4
    assert event_counts["phases", schema.TrackEvent.TYPE_SLICE_BEGIN] > 0
    power = [packet for packet in events if tracks[packet.track_event.track_uuid].name == "power gpu0"]
    assert tracks[power[0].track_event.track_uuid].counter.unit_name == "W"
    report = load_report("domain")
    domain = next(domain for domain in report["domains"] if domain["name"] == "gpu0")
    mean = sum(packet.track_event.double_counter_value for packet in power) / len(power)
    covered_s = (power[-1].timestamp - power[0].timestamp) * 1e-9 * len(power) / (len(power) - 1)
    # Slices after the last reading have no power; their energy is part of the uncertainty.
    assert mean * covered_s == pytest.approx(domain["measured_j"], abs=domain["uncertainty_j"])
    steps = [packet.track_event for packet in events if packet.track_event.name.startswith("step ")]
    assert {note.name for note in steps[5].debug_annotations} >= {"energy_j", "power_w", "loss"}
