// SPDX-License-Identifier: Apache-2.0
#include "recording/record_codec.h"

#include <algorithm>
#include <climits>
#include <cmath>
#include <span>

#include "recording/wire.h"

namespace joulemap::recording {
namespace {

constexpr std::uint8_t kDomainClasses = 5;
constexpr std::size_t kMaxDiagnostics = 1000;  // limit, because adding a diagnostic compares it with all others

void put_text(WireWriter& out, std::string_view text) { out.text(text.substr(0, kMaxTextBytes)); }

void put_record(WireWriter& out, const WireWriter& fields) { out.text(fields.bytes()); }

std::optional<int> take_optional_int(WireReader& in) {
  const std::optional<std::int64_t> value = in.optional_svarint();
  if (!value) return std::nullopt;
  if (*value < INT_MIN || *value > INT_MAX) in.fail();
  return static_cast<int>(*value);
}

void put_channel(WireWriter& out, const Channel& channel) {
  WireWriter fields;
  for (const std::string* text : {&channel.name, &channel.sensor, &channel.source, &channel.domain, &channel.part_of}) {
    put_text(fields, *text);
  }
  fields.u8(static_cast<std::uint8_t>(channel.domain_class));
  put_text(fields, channel.device);
  fields.u8(channel.is_countable ? 1 : 0);
  fields.u8(static_cast<std::uint8_t>(channel.kind));
  fields.u8(static_cast<std::uint8_t>(channel.quantity));
  fields.f64(channel.scale);
  fields.u8(channel.wrap_range ? 1 : 0);
  if (channel.wrap_range) fields.varint(*channel.wrap_range);
  fields.f64(channel.refresh_s);
  fields.f64(channel.averaging_time_s);
  fields.u8(static_cast<std::uint8_t>(channel.provenance));
  put_text(fields, channel.model);
  fields.f64(channel.relative_uncertainty);
  fields.f64(channel.uncertainty_w);
  put_text(fields, channel.driver);
  put_text(fields, channel.device_model);
  put_record(out, fields);
}

bool all_finite(const Channel& channel) {
  return std::isfinite(channel.scale) && std::isfinite(channel.refresh_s) && std::isfinite(channel.averaging_time_s) &&
         std::isfinite(channel.relative_uncertainty) && std::isfinite(channel.uncertainty_w);
}

// Fails `in` if the record is damaged. Returns nullopt without failing if it is of a newer kind.
std::optional<Channel> take_channel(WireReader& in) {
  WireReader fields = in.record();
  Channel channel;
  for (std::string* text : {&channel.name, &channel.sensor, &channel.source, &channel.domain, &channel.part_of}) {
    *text = fields.text();
  }
  const std::uint8_t domain_class = fields.u8();
  channel.domain_class = domain_class < kDomainClasses ? static_cast<DomainClass>(domain_class) : DomainClass::other;
  channel.device = fields.text();
  channel.is_countable = fields.flag();
  const std::uint8_t kind = fields.u8();
  const std::uint8_t quantity = fields.u8();
  channel.scale = fields.f64();
  if (fields.flag()) channel.wrap_range = fields.varint();
  channel.refresh_s = fields.f64();
  channel.averaging_time_s = fields.f64();
  const std::uint8_t provenance = fields.u8();
  channel.model = fields.text();
  channel.relative_uncertainty = fields.f64();
  channel.uncertainty_w = fields.f64();
  if (!fields.rest().empty()) channel.driver = fields.text();  // missing in the earliest files
  if (!fields.rest().empty()) channel.device_model = fields.text();
  if (!fields.ok() || !all_finite(channel)) {
    in.fail();
    return std::nullopt;
  }
  if (kind > 1 || quantity >= kQuantityCount || provenance > 1) return std::nullopt;
  channel.kind = static_cast<ChannelKind>(kind);
  channel.quantity = static_cast<Quantity>(quantity);
  channel.provenance = static_cast<Provenance>(provenance);
  return channel;
}

void put_mark(WireWriter& out, const Mark& mark) {
  WireWriter fields;
  fields.svarint(mark.time_ns);
  fields.u8(static_cast<std::uint8_t>(mark.kind));
  fields.varint(mark.id);
  fields.varint(mark.thread);
  put_text(fields, mark.name);
  put_record(out, fields);
}

void take_mark(WireReader& in, EventBatch& batch) {
  WireReader fields = in.record();
  Mark mark;
  mark.time_ns = fields.svarint();
  const std::uint8_t kind = fields.u8();
  mark.id = fields.varint();
  mark.thread = fields.varint();
  mark.name = fields.text();
  if (!fields.ok()) return in.fail();
  if (kind >= kMarkKindCount) {
    ++batch.unknown_marks;
    return;
  }
  mark.kind = static_cast<MarkKind>(kind);
  batch.marks.push_back(std::move(mark));
}

void put_metric(WireWriter& out, const Metric& metric) {
  WireWriter fields;
  fields.svarint(metric.time_ns);
  fields.optional_svarint(metric.step);
  put_text(fields, metric.name);
  fields.f64(metric.value);
  put_record(out, fields);
}

Metric take_metric(WireReader& in) {
  WireReader fields = in.record();
  Metric metric;
  metric.time_ns = fields.svarint();
  metric.step = fields.optional_svarint();
  metric.name = fields.text();
  metric.value = fields.f64();
  if (!fields.ok()) in.fail();
  return metric;
}

// What a calibration under load finds, in the order of the file.
constexpr std::optional<double> ChannelCalibration::*kFoundUnderLoad[] = {
    &ChannelCalibration::lag_s,       &ChannelCalibration::lag_low_s,       &ChannelCalibration::lag_high_s,
    &ChannelCalibration::window_s,    &ChannelCalibration::time_constant_s, &ChannelCalibration::active_idle_w,
    &ChannelCalibration::loaded_w,    &ChannelCalibration::settle_s,        &ChannelCalibration::settle_w,
    &ChannelCalibration::sleep_s,     &ChannelCalibration::sleep_w,         &ChannelCalibration::gain,
    &ChannelCalibration::gain_spread,
};

void put_calibration(WireWriter& out, const ChannelCalibration& calibration) {
  WireWriter fields;
  put_text(fields, calibration.channel);
  put_text(fields, calibration.device);
  put_text(fields, calibration.driver);
  fields.optional_f64(calibration.refresh_s);
  fields.optional_f64(calibration.refresh_spread_s);
  fields.optional_f64(calibration.phase_s);
  put_text(fields, calibration.phase_reference);
  fields.optional_f64(calibration.read_wall_s);
  fields.optional_f64(calibration.read_cpu_s);
  fields.optional_f64(calibration.idle_w);
  fields.svarint(calibration.created_unix_ns);
  for (const auto member : kFoundUnderLoad) fields.optional_f64(calibration.*member);
  put_text(fields, calibration.gain_reference);
  put_record(out, fields);
}

ChannelCalibration take_calibration(WireReader& in) {
  WireReader fields = in.record();
  ChannelCalibration calibration;
  calibration.channel = fields.text();
  calibration.device = fields.text();
  calibration.driver = fields.text();
  calibration.refresh_s = fields.optional_f64();
  calibration.refresh_spread_s = fields.optional_f64();
  calibration.phase_s = fields.optional_f64();
  calibration.phase_reference = fields.text();
  calibration.read_wall_s = fields.optional_f64();
  calibration.read_cpu_s = fields.optional_f64();
  calibration.idle_w = fields.optional_f64();
  calibration.created_unix_ns = fields.svarint();
  // Files written before load calibration existed end here.
  if (!fields.rest().empty()) {
    for (const auto member : kFoundUnderLoad) calibration.*member = fields.optional_f64();
    calibration.gain_reference = fields.text();
  }
  if (!fields.ok()) in.fail();
  return calibration;
}

void put_diagnostics(WireWriter& out, const Diagnostics& diagnostics) {
  const std::span<const Diagnostic> all = diagnostics.list();
  const std::span<const Diagnostic> kept = all.first(std::min(all.size(), kMaxDiagnostics));
  out.varint(kept.size());
  for (const Diagnostic& diagnostic : kept) {
    WireWriter fields;
    put_text(fields, diagnostic.code);
    fields.varint(diagnostic.count);
    put_text(fields, diagnostic.message);
    put_text(fields, diagnostic.remedy);
    put_record(out, fields);
  }
}

Diagnostics take_diagnostics(WireReader& in) {
  Diagnostics diagnostics;
  const std::size_t count = in.count();
  if (count > kMaxDiagnostics) in.fail();
  for (std::size_t i = 0; i < count && in.ok(); ++i) {
    WireReader fields = in.record();
    Diagnostic diagnostic;
    diagnostic.code = fields.text();
    diagnostic.count = fields.varint();
    diagnostic.message = fields.text();
    diagnostic.remedy = fields.text();
    if (!fields.ok()) in.fail();
    diagnostics.add(std::move(diagnostic));
  }
  return diagnostics;
}

}  // namespace

std::string encode_source(const SourceDefinition& definition) {
  const RecordingSource& source = definition.source;
  WireWriter fields;
  put_text(fields, source.recording_id);
  put_text(fields, source.host);
  put_text(fields, source.boot_id);
  fields.svarint(source.pid);
  fields.svarint(source.started_ns);
  put_text(fields, source.role);
  fields.varint(source.command.size());
  for (const std::string& argument : source.command) put_text(fields, argument);
  put_text(fields, source.version);
  WireWriter out;
  put_record(out, fields);
  out.varint(definition.channels.size());
  for (const Channel& channel : definition.channels) put_channel(out, channel);
  return std::move(out).take();
}

std::optional<DecodedSource> decode_source(std::string_view payload) {
  WireReader in(payload);
  WireReader fields = in.record();
  DecodedSource decoded;
  RecordingSource& source = decoded.source;
  source.recording_id = fields.text();
  source.host = fields.text();
  source.boot_id = fields.text();
  source.pid = fields.svarint();
  source.started_ns = fields.svarint();
  source.role = fields.text();
  const std::size_t arguments = fields.count();
  for (std::size_t i = 0; i < arguments && fields.ok(); ++i) source.command.push_back(fields.text());
  source.version = fields.text();
  const std::size_t channels = in.count();
  for (std::size_t i = 0; i < channels && in.ok(); ++i) decoded.channels.push_back(take_channel(in));
  if (!in.ok() || !fields.ok()) return std::nullopt;
  return decoded;
}

std::string encode_events(const EventBatch& batch) {
  WireWriter out;
  out.varint(batch.marks.size());
  for (const Mark& mark : batch.marks) put_mark(out, mark);
  out.varint(batch.metrics.size());
  for (const Metric& metric : batch.metrics) put_metric(out, metric);
  return std::move(out).take();
}

std::optional<EventBatch> decode_events(std::string_view payload) {
  WireReader in(payload);
  EventBatch batch;
  const std::size_t marks = in.count();
  for (std::size_t i = 0; i < marks && in.ok(); ++i) take_mark(in, batch);
  const std::size_t metrics = in.count();
  for (std::size_t i = 0; i < metrics && in.ok(); ++i) batch.metrics.push_back(take_metric(in));
  if (!in.ok()) return std::nullopt;
  return batch;
}

std::string encode_facts(const FactBatch& batch) {
  WireWriter out;
  out.varint(batch.environment.size());
  for (const EnvironmentFact& fact : batch.environment) {
    WireWriter fields;
    put_text(fields, fact.name);
    put_text(fields, fact.value);
    put_record(out, fields);
  }
  out.varint(batch.calibrations.size());
  for (const ChannelCalibration& calibration : batch.calibrations) put_calibration(out, calibration);
  return std::move(out).take();
}

std::optional<FactBatch> decode_facts(std::string_view payload) {
  WireReader in(payload);
  FactBatch batch;
  const std::size_t facts = in.count();
  for (std::size_t i = 0; i < facts && in.ok(); ++i) {
    WireReader fields = in.record();
    EnvironmentFact& fact = batch.environment.emplace_back();
    fact.name = fields.text();
    fact.value = fields.text();
    if (!fields.ok()) in.fail();
  }
  const std::size_t calibrations = in.count();
  for (std::size_t i = 0; i < calibrations && in.ok(); ++i) batch.calibrations.push_back(take_calibration(in));
  if (!in.ok()) return std::nullopt;
  return batch;
}

std::string encode_end(const RecordingEnd& end) {
  WireWriter fields;
  fields.optional_svarint(end.exit_code);
  fields.optional_svarint(end.signal);
  fields.f64(end.overhead_cpu_s);
  fields.varint(end.missed_ticks);
  fields.varint(end.lost_samples);
  WireWriter out;
  put_record(out, fields);
  put_diagnostics(out, end.diagnostics);
  return std::move(out).take();
}

std::optional<RecordingEnd> decode_end(std::string_view payload) {
  WireReader in(payload);
  WireReader fields = in.record();
  RecordingEnd end;
  end.exit_code = take_optional_int(fields);
  end.signal = take_optional_int(fields);
  end.overhead_cpu_s = fields.f64();
  end.missed_ticks = fields.varint();
  end.lost_samples = fields.varint();
  end.diagnostics = take_diagnostics(in);
  if (!in.ok() || !fields.ok() || !std::isfinite(end.overhead_cpu_s)) return std::nullopt;
  return end;
}

std::string encode_diagnostics(const Diagnostics& diagnostics) {
  WireWriter out;
  put_diagnostics(out, diagnostics);
  return std::move(out).take();
}

std::optional<Diagnostics> decode_diagnostics(std::string_view payload) {
  WireReader in(payload);
  Diagnostics diagnostics = take_diagnostics(in);
  return in.ok() ? std::optional(std::move(diagnostics)) : std::nullopt;
}

}  // namespace joulemap::recording
