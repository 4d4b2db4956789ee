// SPDX-License-Identifier: Apache-2.0
#include "recording/power_codec.h"

#include <algorithm>

#include "recording/kernel_power_library.h"
#include "recording/record_codec.h"
#include "recording/wire.h"

namespace joulemap::recording {
namespace {

// Payload size at which a chunk ends. Kernel names are long and similar: a chunk of some thousands compresses to a
// tenth.
constexpr std::size_t kPowerPayloadBytes = std::size_t{1} << 20;

std::string encode_kernel_power(const KernelPower& known) {
  WireWriter fields;
  fields.write_text(std::string_view(known.gpu).substr(0, kMaxTextBytes));
  fields.write_u8(static_cast<std::uint8_t>(known.kernel_key.kind));
  fields.write_text(std::string_view(known.kernel_key.name).substr(0, kMaxTextBytes));
  fields.write_varint(known.kernel_key.size);
  for (const double value : {known.blocks, known.threads_per_block, known.mean_kernel_s, known.watts, known.precision,
                             known.sum_of_squared_precisions, known.cochran_q, known.measured_kernel_s}) {
    fields.write_f64(value);
  }
  fields.write_varint(known.recordings);
  return std::move(fields).take_bytes();
}

std::optional<KernelPower> read_power_record(WireReader& in) {
  WireReader fields = in.read_record();
  KernelPower known;
  known.gpu = fields.read_text();
  const std::uint8_t kind = fields.read_u8();
  known.kernel_key.name = fields.read_text();
  known.kernel_key.size = static_cast<std::uint32_t>(std::min<std::uint64_t>(fields.read_varint(), UINT32_MAX));
  for (double* value : {&known.blocks, &known.threads_per_block, &known.mean_kernel_s, &known.watts, &known.precision,
                        &known.sum_of_squared_precisions, &known.cochran_q, &known.measured_kernel_s}) {
    *value = fields.read_f64();
  }
  known.recordings = fields.read_varint();
  if (!fields.ok()) in.mark_as_failed();
  if (!in.ok() || kind >= kKernelKindCount || !is_valid_kernel_power(known)) return std::nullopt;
  known.kernel_key.kind = static_cast<KernelKind>(kind);
  return known;
}

}  // namespace

std::vector<std::string> encode_power_payloads(std::span<const KernelPower> powers) {
  std::vector<std::string> payloads;
  WireWriter records;
  std::size_t count = 0;
  const auto finish_payload = [&] {
    if (count == 0) return;
    WireWriter out;
    out.write_varint(count);
    out.write_raw(records.bytes());
    payloads.push_back(std::move(out).take_bytes());
    records = WireWriter();
    count = 0;
  };
  for (const KernelPower& known : powers) {
    records.write_text(encode_kernel_power(known));
    ++count;
    if (records.bytes().size() > kPowerPayloadBytes) finish_payload();
  }
  finish_payload();
  return payloads;
}

std::optional<std::vector<KernelPower>> decode_power_payload(std::string_view payload) {
  WireReader in(payload);
  std::vector<KernelPower> powers;
  const std::size_t count = in.read_count();
  for (std::size_t i = 0; i < count && in.ok(); ++i) {
    if (std::optional<KernelPower> known = read_power_record(in)) powers.push_back(std::move(*known));
  }
  if (!in.ok()) return std::nullopt;
  return powers;
}

}  // namespace joulemap::recording
