// SPDX-License-Identifier: Apache-2.0
//
// Fuzzes kernel libraries. The first byte selects how the rest is used:
//   0  as a file
//   1  as payloads of kernel power chunks, each preceded by its length in two bytes; the checksums are valid
//   2  as the numbers of KernelPower entries, which are encoded to a valid file
// A loaded library must be sorted and valid, with each pair of GPU and kernel key once. Merging it into an empty
// library must keep every entry.
#include <cmath>
#include <cstdint>
#include <cstring>
#include <string>
#include <tuple>
#include <vector>

#include "base/check.h"
#include "recording/chunk.h"
#include "recording/kernel_library_file.h"
#include "recording/kernel_power_library.h"
#include "recording/power_codec.h"
#include "recording/record_codec.h"

namespace {

using namespace joulemap;
using namespace joulemap::recording;

class Input {
 public:
  Input(const std::uint8_t* data, std::size_t size) : data_(data), size_(size) {}
  bool empty() const { return size_ == 0; }
  template <class T>
  T next() {
    T value{};
    const std::size_t taken = std::min(sizeof value, size_);
    std::memcpy(&value, data_, taken);
    data_ += taken;
    size_ -= taken;
    return value;
  }
  std::string text(std::size_t length) {
    const std::size_t taken = std::min(length, size_);
    std::string text(reinterpret_cast<const char*>(data_), taken);
    data_ += taken;
    size_ -= taken;
    return text;
  }
  std::string remaining_bytes() { return text(size_); }

 private:
  const std::uint8_t* data_;
  std::size_t size_;
};

KernelPower next_kernel_power(Input& input) {
  KernelPower power;
  const auto choice = input.next<std::uint8_t>();
  power.gpu = (choice & 1U) != 0 ? "NVIDIA H200" : "NVIDIA A100";
  power.kernel_key.kind = static_cast<KernelKind>((choice >> 1U) % kKernelKindCount);
  power.kernel_key.name = input.text(input.next<std::uint8_t>() % 4);
  power.kernel_key.size = input.next<std::uint8_t>();
  for (double* value : {&power.blocks, &power.threads_per_block, &power.mean_kernel_s, &power.watts, &power.precision,
                        &power.sum_of_squared_precisions, &power.cochran_q, &power.measured_kernel_s}) {
    *value = (choice & 128U) != 0 ? input.next<double>() : input.next<std::uint8_t>();
  }
  power.recordings = input.next<std::uint8_t>();
  return power;
}

std::string make_payload_chunks(Input& input) {
  std::string file;
  while (!input.empty()) {
    const std::string payload = input.text(input.next<std::uint16_t>());
    file += make_chunk(ChunkType::kernel_powers, 0, payload);
  }
  return file;
}

std::string encode_kernel_powers(Input& input) {
  std::vector<KernelPower> kernel_powers;
  while (!input.empty()) kernel_powers.push_back(next_kernel_power(input));
  std::string file;
  for (const std::string& payload : encode_power_payloads(kernel_powers))
    file += make_chunk(ChunkType::kernel_powers, 0, payload);
  return file;
}

std::string prepend_source_chunk(std::string chunks) {
  SourceDefinition definition;
  definition.source.recording_id = "library";
  return make_chunk(ChunkType::source, 0, encode_source(definition)) + std::move(chunks);
}

bool has_smaller_library_key(const KernelPower& a, const KernelPower& b) {
  return std::tie(a.gpu, a.kernel_key) < std::tie(b.gpu, b.kernel_key);
}

void check_library(const LoadedKernelLibrary& library) {
  const std::vector<KernelPower>& powers = library.powers;
  for (std::size_t i = 0; i < powers.size(); ++i) {
    JOULEMAP_CHECK(recording::is_valid_kernel_power(powers[i]) && !powers[i].is_from_similar_kernels(),
                   "a power that cannot be");
    JOULEMAP_CHECK(i == 0 || has_smaller_library_key(powers[i - 1], powers[i]), "powers out of order, or twice");
    JOULEMAP_CHECK(recording::find_kernel_power(powers, powers[i].gpu, powers[i].kernel_key) == &powers[i],
                   "a power that is not found");
    const double spread = recording::predictive_relative_sd(powers[i]);
    JOULEMAP_CHECK(std::isfinite(spread) && spread >= 0, "a spread that is no number");
  }
  std::vector<KernelPower> merged;
  JOULEMAP_CHECK(recording::merge_into_kernel_library(merged, powers, powers.size() + 1) == 0, "powers were dropped");
  JOULEMAP_CHECK(merged.size() == powers.size(), "powers were lost");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  Input input(data, size);
  const int mode = input.next<std::uint8_t>() % 3;
  const std::string file = mode == 0   ? input.remaining_bytes()
                           : mode == 1 ? prepend_source_chunk(make_payload_chunks(input))
                                       : prepend_source_chunk(encode_kernel_powers(input));
  MemorySource bytes(file);
  const Result<LoadedKernelLibrary> library = read_kernel_library(bytes, "fuzzed");
  if (library) check_library(*library);
  return 0;
}
