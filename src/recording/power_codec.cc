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

std::string encode_kernel_power(const KernelPower& kernel_power) {
  WireWriter fields;
  fields.write_text(std::string_view(kernel_power.gpu).substr(0, kMaxTextBytes));
  fields.write_u8(static_cast<std::uint8_t>(kernel_power.kernel_key.kind));
  fields.write_text(std::string_view(kernel_power.kernel_key.name).substr(0, kMaxTextBytes));
  fields.write_varint(kernel_power.kernel_key.size);
  for (const double value : {kernel_power.blocks, kernel_power.threads_per_block, kernel_power.mean_kernel_s,
                             kernel_power.watts, kernel_power.precision, kernel_power.sum_of_squared_precisions,
                             kernel_power.cochran_q, kernel_power.measured_kernel_s}) {
    fields.write_f64(value);
  }
  fields.write_varint(kernel_power.recordings);
  return std::move(fields).take_bytes();
}

std::optional<KernelPower> read_power_record(WireReader& reader) {
  WireReader fields = reader.read_record();
  KernelPower kernel_power;
  kernel_power.gpu = fields.read_text();
  const std::uint8_t kind = fields.read_u8();
  kernel_power.kernel_key.name = fields.read_text();
  kernel_power.kernel_key.size = static_cast<std::uint32_t>(std::min<std::uint64_t>(fields.read_varint(), UINT32_MAX));
  for (double* value : {&kernel_power.blocks, &kernel_power.threads_per_block, &kernel_power.mean_kernel_s,
                        &kernel_power.watts, &kernel_power.precision, &kernel_power.sum_of_squared_precisions,
                        &kernel_power.cochran_q, &kernel_power.measured_kernel_s}) {
    *value = fields.read_f64();
  }
  kernel_power.recordings = fields.read_varint();
  if (!fields.ok()) reader.mark_as_failed();
  if (!reader.ok() || kind >= kKernelKindCount || !is_valid_kernel_power(kernel_power)) return std::nullopt;
  kernel_power.kernel_key.kind = static_cast<KernelKind>(kind);
  return kernel_power;
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
  for (const KernelPower& kernel_power : powers) {
    records.write_text(encode_kernel_power(kernel_power));
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
    if (std::optional<KernelPower> kernel_power = read_power_record(in)) powers.push_back(std::move(*kernel_power));
  }
  if (!in.ok()) return std::nullopt;
  return powers;
}

}  // namespace joulemap::recording
