// SPDX-License-Identifier: Apache-2.0
#include "recording/record_codec.h"

#include <algorithm>
#include <climits>
#include <cmath>
#include <span>

#include "recording/wire.h"

namespace joulemap::recording {
namespace {

constexpr std::uint8_t kDomainClassCount = 5;
constexpr std::size_t kMaxDecodedDiagnostics = 1000;  // limit, because adding a diagnostic compares it with all others

void write_text(WireWriter& out, std::string_view text) { out.write_text(text.substr(0, kMaxTextBytes)); }

void write_record(WireWriter& out, const WireWriter& fields) { out.write_text(fields.bytes()); }

std::optional<int> read_optional_int(WireReader& reader) {
  const std::optional<std::int64_t> value = reader.read_optional_signed_varint();
  if (!value) return std::nullopt;
  if (*value < INT_MIN || *value > INT_MAX) reader.mark_as_failed();
  return static_cast<int>(*value);
}

void write_channel(WireWriter& out, const Channel& channel) {
  WireWriter fields;
  for (const std::string* text : {&channel.name, &channel.sensor, &channel.source, &channel.domain, &channel.part_of}) {
    write_text(fields, *text);
  }
  fields.write_u8(static_cast<std::uint8_t>(channel.domain_class));
  write_text(fields, channel.device);
  fields.write_u8(channel.is_countable ? 1 : 0);
  fields.write_u8(static_cast<std::uint8_t>(channel.kind));
  fields.write_u8(static_cast<std::uint8_t>(channel.quantity));
  fields.write_f64(channel.scale);
  fields.write_u8(channel.wrap_range ? 1 : 0);
  if (channel.wrap_range) fields.write_varint(*channel.wrap_range);
  fields.write_f64(channel.refresh_s);
  fields.write_f64(channel.averaging_time_s);
  fields.write_u8(static_cast<std::uint8_t>(channel.provenance));
  write_text(fields, channel.model);
  fields.write_f64(channel.relative_uncertainty);
  fields.write_f64(channel.uncertainty_w);
  write_text(fields, channel.driver);
  write_text(fields, channel.device_model);
  write_record(out, fields);
}

bool has_finite_numbers(const Channel& channel) {
  return std::isfinite(channel.scale) && std::isfinite(channel.refresh_s) && std::isfinite(channel.averaging_time_s) &&
         std::isfinite(channel.relative_uncertainty) && std::isfinite(channel.uncertainty_w);
}

// Fails `reader` if the record is damaged. Returns nullopt without failing if it is of a newer kind.
std::optional<Channel> read_channel(WireReader& reader) {
  WireReader fields = reader.read_record();
  Channel channel;
  for (std::string* text : {&channel.name, &channel.sensor, &channel.source, &channel.domain, &channel.part_of}) {
    *text = fields.read_text();
  }
  const std::uint8_t domain_class = fields.read_u8();
  channel.domain_class = domain_class < kDomainClassCount ? static_cast<DomainClass>(domain_class) : DomainClass::other;
  channel.device = fields.read_text();
  channel.is_countable = fields.read_flag();
  const std::uint8_t kind = fields.read_u8();
  const std::uint8_t quantity = fields.read_u8();
  channel.scale = fields.read_f64();
  if (fields.read_flag()) channel.wrap_range = fields.read_varint();
  channel.refresh_s = fields.read_f64();
  channel.averaging_time_s = fields.read_f64();
  const std::uint8_t provenance = fields.read_u8();
  channel.model = fields.read_text();
  channel.relative_uncertainty = fields.read_f64();
  channel.uncertainty_w = fields.read_f64();
  if (!fields.unread_bytes().empty()) channel.driver = fields.read_text();  // missing in the earliest files
  if (!fields.unread_bytes().empty()) channel.device_model = fields.read_text();
  if (!fields.ok() || !has_finite_numbers(channel)) {
    reader.mark_as_failed();
    return std::nullopt;
  }
  if (kind > 1 || quantity >= kQuantityCount || provenance > 1) return std::nullopt;
  channel.kind = static_cast<ChannelKind>(kind);
  channel.quantity = static_cast<Quantity>(quantity);
  channel.provenance = static_cast<Provenance>(provenance);
  return channel;
}

void write_mark(WireWriter& out, const Mark& mark) {
  WireWriter fields;
  fields.write_signed_varint(mark.time_ns);
  fields.write_u8(static_cast<std::uint8_t>(mark.kind));
  fields.write_varint(mark.id);
  fields.write_varint(mark.thread);
  write_text(fields, mark.name);
  write_record(out, fields);
}

void read_mark(WireReader& reader, EventBatch& batch) {
  WireReader fields = reader.read_record();
  Mark mark;
  mark.time_ns = fields.read_signed_varint();
  const std::uint8_t kind = fields.read_u8();
  mark.id = fields.read_varint();
  mark.thread = fields.read_varint();
  mark.name = fields.read_text();
  if (!fields.ok()) return reader.mark_as_failed();
  if (kind >= kMarkKindCount) {
    ++batch.unknown_mark_count;
    return;
  }
  mark.kind = static_cast<MarkKind>(kind);
  batch.marks.push_back(std::move(mark));
}

void write_metric(WireWriter& out, const Metric& metric) {
  WireWriter fields;
  fields.write_signed_varint(metric.time_ns);
  fields.write_optional_signed_varint(metric.step);
  write_text(fields, metric.name);
  fields.write_f64(metric.value);
  write_record(out, fields);
}

Metric read_metric(WireReader& reader) {
  WireReader fields = reader.read_record();
  Metric metric;
  metric.time_ns = fields.read_signed_varint();
  metric.step = fields.read_optional_signed_varint();
  metric.name = fields.read_text();
  metric.value = fields.read_f64();
  if (!fields.ok()) reader.mark_as_failed();
  return metric;
}

// What a calibration under load finds, in the order of the file.
constexpr std::optional<double> ChannelCalibration::*kLoadFindingMembers[] = {
    &ChannelCalibration::lag_s,       &ChannelCalibration::lag_low_s,       &ChannelCalibration::lag_high_s,
    &ChannelCalibration::window_s,    &ChannelCalibration::time_constant_s, &ChannelCalibration::active_idle_w,
    &ChannelCalibration::loaded_w,    &ChannelCalibration::settle_s,        &ChannelCalibration::settle_w,
    &ChannelCalibration::sleep_s,     &ChannelCalibration::sleep_w,         &ChannelCalibration::gain,
    &ChannelCalibration::gain_spread,
};

void write_calibration(WireWriter& out, const ChannelCalibration& calibration) {
  WireWriter fields;
  write_text(fields, calibration.channel);
  write_text(fields, calibration.device);
  write_text(fields, calibration.driver);
  fields.write_optional_f64(calibration.refresh_s);
  fields.write_optional_f64(calibration.refresh_spread_s);
  fields.write_optional_f64(calibration.phase_s);
  write_text(fields, calibration.phase_reference_channel);
  fields.write_optional_f64(calibration.read_wall_s);
  fields.write_optional_f64(calibration.read_cpu_s);
  fields.write_optional_f64(calibration.idle_w);
  fields.write_signed_varint(calibration.created_unix_ns);
  for (const auto member : kLoadFindingMembers) fields.write_optional_f64(calibration.*member);
  write_text(fields, calibration.gain_reference_channel);
  write_record(out, fields);
}

ChannelCalibration read_calibration(WireReader& reader) {
  WireReader fields = reader.read_record();
  ChannelCalibration calibration;
  calibration.channel = fields.read_text();
  calibration.device = fields.read_text();
  calibration.driver = fields.read_text();
  calibration.refresh_s = fields.read_optional_f64();
  calibration.refresh_spread_s = fields.read_optional_f64();
  calibration.phase_s = fields.read_optional_f64();
  calibration.phase_reference_channel = fields.read_text();
  calibration.read_wall_s = fields.read_optional_f64();
  calibration.read_cpu_s = fields.read_optional_f64();
  calibration.idle_w = fields.read_optional_f64();
  calibration.created_unix_ns = fields.read_signed_varint();
  // Files written before load calibration existed end here.
  if (!fields.unread_bytes().empty()) {
    for (const auto member : kLoadFindingMembers) calibration.*member = fields.read_optional_f64();
    calibration.gain_reference_channel = fields.read_text();
  }
  if (!fields.ok()) reader.mark_as_failed();
  return calibration;
}

void write_diagnostic_records(WireWriter& out, const Diagnostics& diagnostics) {
  const std::span<const Diagnostic> diagnostic_list = diagnostics.list();
  const std::span<const Diagnostic> written_diagnostics =
      diagnostic_list.first(std::min(diagnostic_list.size(), kMaxDecodedDiagnostics));
  out.write_varint(written_diagnostics.size());
  for (const Diagnostic& diagnostic : written_diagnostics) {
    WireWriter fields;
    write_text(fields, diagnostic.code);
    fields.write_varint(diagnostic.count);
    write_text(fields, diagnostic.message);
    write_text(fields, diagnostic.remedy);
    write_record(out, fields);
  }
}

Diagnostics read_diagnostic_records(WireReader& reader) {
  Diagnostics diagnostics;
  const std::size_t count = reader.read_count();
  if (count > kMaxDecodedDiagnostics) reader.mark_as_failed();
  for (std::size_t i = 0; i < count && reader.ok(); ++i) {
    WireReader fields = reader.read_record();
    Diagnostic diagnostic;
    diagnostic.code = fields.read_text();
    diagnostic.count = fields.read_varint();
    diagnostic.message = fields.read_text();
    diagnostic.remedy = fields.read_text();
    if (!fields.ok()) reader.mark_as_failed();
    diagnostics.add(std::move(diagnostic));
  }
  return diagnostics;
}

}  // namespace

std::string encode_source(const SourceDefinition& definition) {
  const RecordingSource& source = definition.source;
  WireWriter fields;
  write_text(fields, source.recording_id);
  write_text(fields, source.host);
  write_text(fields, source.boot_id);
  fields.write_signed_varint(source.pid);
  fields.write_signed_varint(source.started_ns);
  write_text(fields, source.role);
  fields.write_varint(source.command.size());
  for (const std::string& argument : source.command) write_text(fields, argument);
  write_text(fields, source.version);
  WireWriter out;
  write_record(out, fields);
  out.write_varint(definition.channels.size());
  for (const Channel& channel : definition.channels) write_channel(out, channel);
  return std::move(out).take_bytes();
}

std::optional<DecodedSource> decode_source(std::string_view payload) {
  WireReader in(payload);
  WireReader fields = in.read_record();
  DecodedSource decoded;
  RecordingSource& source = decoded.source;
  source.recording_id = fields.read_text();
  source.host = fields.read_text();
  source.boot_id = fields.read_text();
  source.pid = fields.read_signed_varint();
  source.started_ns = fields.read_signed_varint();
  source.role = fields.read_text();
  const std::size_t arguments = fields.read_count();
  for (std::size_t i = 0; i < arguments && fields.ok(); ++i) source.command.push_back(fields.read_text());
  source.version = fields.read_text();
  const std::size_t channels = in.read_count();
  for (std::size_t i = 0; i < channels && in.ok(); ++i) decoded.channels.push_back(read_channel(in));
  if (!in.ok() || !fields.ok()) return std::nullopt;
  return decoded;
}

std::string encode_events(const EventBatch& batch) {
  WireWriter out;
  out.write_varint(batch.marks.size());
  for (const Mark& mark : batch.marks) write_mark(out, mark);
  out.write_varint(batch.metrics.size());
  for (const Metric& metric : batch.metrics) write_metric(out, metric);
  return std::move(out).take_bytes();
}

std::optional<EventBatch> decode_events(std::string_view payload) {
  WireReader in(payload);
  EventBatch batch;
  const std::size_t marks = in.read_count();
  for (std::size_t i = 0; i < marks && in.ok(); ++i) read_mark(in, batch);
  const std::size_t metrics = in.read_count();
  for (std::size_t i = 0; i < metrics && in.ok(); ++i) batch.metrics.push_back(read_metric(in));
  if (!in.ok()) return std::nullopt;
  return batch;
}

std::string encode_facts(const FactBatch& batch) {
  WireWriter out;
  out.write_varint(batch.environment_facts.size());
  for (const EnvironmentFact& fact : batch.environment_facts) {
    WireWriter fields;
    write_text(fields, fact.name);
    write_text(fields, fact.value);
    write_record(out, fields);
  }
  out.write_varint(batch.calibrations.size());
  for (const ChannelCalibration& calibration : batch.calibrations) write_calibration(out, calibration);
  return std::move(out).take_bytes();
}

std::optional<FactBatch> decode_facts(std::string_view payload) {
  WireReader in(payload);
  FactBatch batch;
  const std::size_t fact_count = in.read_count();
  for (std::size_t i = 0; i < fact_count && in.ok(); ++i) {
    WireReader fields = in.read_record();
    EnvironmentFact& fact = batch.environment_facts.emplace_back();
    fact.name = fields.read_text();
    fact.value = fields.read_text();
    if (!fields.ok()) in.mark_as_failed();
  }
  const std::size_t calibrations = in.read_count();
  for (std::size_t i = 0; i < calibrations && in.ok(); ++i) batch.calibrations.push_back(read_calibration(in));
  if (!in.ok()) return std::nullopt;
  return batch;
}

std::string encode_end(const RecordingEnd& end) {
  WireWriter fields;
  fields.write_optional_signed_varint(end.exit_code);
  fields.write_optional_signed_varint(end.signal);
  fields.write_f64(end.overhead_cpu_s);
  fields.write_varint(end.missed_ticks);
  fields.write_varint(end.lost_samples);
  WireWriter out;
  write_record(out, fields);
  write_diagnostic_records(out, end.diagnostics);
  return std::move(out).take_bytes();
}

std::optional<RecordingEnd> decode_end(std::string_view payload) {
  WireReader in(payload);
  WireReader fields = in.read_record();
  RecordingEnd end;
  end.exit_code = read_optional_int(fields);
  end.signal = read_optional_int(fields);
  end.overhead_cpu_s = fields.read_f64();
  end.missed_ticks = fields.read_varint();
  end.lost_samples = fields.read_varint();
  end.diagnostics = read_diagnostic_records(in);
  if (!in.ok() || !fields.ok() || !std::isfinite(end.overhead_cpu_s)) return std::nullopt;
  return end;
}

std::string encode_diagnostics(const Diagnostics& diagnostics) {
  WireWriter out;
  write_diagnostic_records(out, diagnostics);
  return std::move(out).take_bytes();
}

std::optional<Diagnostics> decode_diagnostics(std::string_view payload) {
  WireReader in(payload);
  Diagnostics diagnostics = read_diagnostic_records(in);
  return in.ok() ? std::optional(std::move(diagnostics)) : std::nullopt;
}

}  // namespace joulemap::recording
