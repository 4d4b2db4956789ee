// SPDX-License-Identifier: Apache-2.0
//
// Fuzzes the energy of a channel in a window, from any sequence of readings before, during and after it. The energy is
// finite and never negative, and a domain table with the same channel twice does not count it twice.
#include <cmath>
#include <cstdint>
#include <cstring>
#include <vector>

#include "base/check.h"
#include "energy/channel_faults.h"
#include "energy/energy_curve.h"
#include "energy/make_domain_table.h"

namespace {

class FuzzInput {
 public:
  FuzzInput(const std::uint8_t* data, std::size_t size) : data_(data), size_(size) {}
  bool empty() const { return size_ == 0; }
  std::uint8_t next() {
    if (size_ == 0) return 0;
    --size_;
    return *data_++;
  }
  std::uint64_t next_u64() {
    std::uint64_t value = 0;
    for (int i = 0; i < 8; ++i) value = value << 8 | next();
    return value;
  }

 private:
  const std::uint8_t* data_;
  std::size_t size_;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace joulemap;
  FuzzInput bytes(data, size);
  Channel channel;
  channel.domain = channel.name = "package-0";
  channel.scale = 1e-6;
  const std::uint8_t shape = bytes.next();
  channel.kind = (shape & 1) != 0 ? ChannelKind::gauge : ChannelKind::counter;
  if ((shape & 2) != 0) channel.wrap_range = bytes.next_u64() >> (shape >> 3);
  if ((shape & 4) != 0) channel.provenance = Provenance::estimated;

  EnergyCurve curve(channel);
  std::int64_t now_ns = 1'000'000'000;
  std::int64_t begin_ns = 0;
  std::int64_t end_ns = 0;
  std::uint64_t raw = 0;
  while (!bytes.empty()) {
    const std::uint8_t action = bytes.next();
    now_ns += static_cast<std::int64_t>(bytes.next()) * 100'000;
    if (action < 8 && begin_ns == 0) {
      begin_ns = now_ns;
    } else if (action < 16 && begin_ns != 0 && end_ns == 0) {
      end_ns = now_ns;
    } else if (action < 32) {
      curve.add_power_history({now_ns, static_cast<double>(bytes.next())});
    } else {
      raw = (action & 1) != 0 ? bytes.next_u64() : raw + std::uint64_t{1000} * bytes.next();
      const auto code = static_cast<ReadCode>(action % 16 == 0 ? bytes.next() % kReadCodeCount : 0);
      curve.observe({raw, now_ns, now_ns + 1000, code});
    }
  }
  const ChannelEnergy energy = curve.energy_between(begin_ns, end_ns);
  if (energy.joules) {
    JOULEMAP_CHECK(std::isfinite(*energy.joules) && *energy.joules >= 0, "impossible energy");
    JOULEMAP_CHECK(std::isfinite(energy.uncertainty_j) && energy.uncertainty_j >= 0, "impossible uncertainty");
  } else {
    JOULEMAP_CHECK(!energy.missing_reason.empty(), "no energy and no reason");
  }
  static_cast<void>(describe_faults(energy));
  const std::vector<ChannelEnergy> channels(2, energy);
  const DomainTable table = make_domain_table(channels, 1);
  if (table.totals.measured) {
    JOULEMAP_CHECK(table.totals.measured->energy.value() <= *energy.joules, "counted twice");
  }
  return 0;
}
