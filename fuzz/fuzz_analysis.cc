// SPDX-License-Identifier: Apache-2.0
//
// Fuzzes whole recordings with valid checksums and invalid contents, from file to report: reader, attribution and JSON
// get input that no checksum rejects. The input is a sequence of chunks: type (one byte), source and payload length
// (two bytes each), payload. The report may fail but not crash; no energy or time in it is negative or infinite.
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <array>
#include <cmath>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "attribution/analysis/report_builder.h"
#include "base/check.h"
#include "base/file_descriptor.h"
#include "base/write_fully.h"
#include "recording/chunk.h"
#include "report/json/report_json.h"

namespace {

using namespace joulemap;

std::uint16_t next_u16(std::string_view& bytes) {
  const auto low = static_cast<unsigned char>(bytes[0]);
  const auto high = static_cast<unsigned char>(bytes[1]);
  bytes.remove_prefix(2);
  return static_cast<std::uint16_t>(low | high << 8U);
}

std::string make_fuzzed_recording(std::string_view bytes) {
  std::string file;
  while (bytes.size() >= 5) {
    const auto type = static_cast<recording::ChunkType>(static_cast<unsigned char>(bytes[0]) % 10);
    bytes.remove_prefix(1);
    const std::uint16_t source = next_u16(bytes) % 4;
    const std::string_view payload = bytes.substr(0, next_u16(bytes));
    file += recording::make_chunk(type, source, payload);
    bytes.remove_prefix(payload.size());
  }
  return file;
}

void check_rows(const ReportResult& result) {
  for (const ReportRow& row : result.rows) {
    JOULEMAP_CHECK(!row.energy_j || (std::isfinite(*row.energy_j) && *row.energy_j >= 0), "an energy that is none");
    JOULEMAP_CHECK(std::isfinite(row.time_s) && row.time_s >= 0, "a time that is none");
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const FileDescriptor file(::memfd_create("fuzzed", MFD_CLOEXEC));
  const std::string bytes = make_fuzzed_recording({reinterpret_cast<const char*>(data), size});
  JOULEMAP_CHECK(write_fully(file.get(), bytes, "fuzzed"), "memory is full");
  const std::string path = "/proc/self/fd/" + std::to_string(file.get());
  using attribution::RowLevel;
  constexpr std::array kRowLevels = {RowLevel::domain, RowLevel::layer,   RowLevel::kernel, RowLevel::op,
                                     RowLevel::step,   RowLevel::request, RowLevel::token};
  for (const RowLevel level : kRowLevels) {
    const Result<ReportResult> result = attribution::build_report(std::span(&path, 1), {.level = level});
    if (!result) return 0;
    check_rows(*result);
    static_cast<void>(report::report_json(*result));
  }
  return 0;
}
