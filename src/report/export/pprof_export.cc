// SPDX-License-Identifier: Apache-2.0
//
// export --to pprof: a gzipped protocol buffer with three values per stack: energy, time and calls.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "formats/gzip_writer.h"
#include "formats/protobuf.h"
#include "report/export/energy_stacks.h"
#include "report/export/exports.h"

namespace joulemap::report {
namespace {

using formats::ProtobufWriter;

// Field numbers of pprof's profile.proto.
constexpr std::uint32_t kSampleType = 1;
constexpr std::uint32_t kSample = 2;
constexpr std::uint32_t kLocation = 4;
constexpr std::uint32_t kFunction = 5;
constexpr std::uint32_t kStringTable = 6;
constexpr std::uint32_t kTimeNanos = 9;
constexpr std::uint32_t kDurationNanos = 10;
constexpr std::uint32_t kComment = 13;
constexpr std::uint32_t kDefaultSampleType = 14;

class Profile {
 public:
  Profile() { number_of_text(""); }  // the format requires that string 0 is empty

  std::uint64_t number_of_text(const std::string& text) {
    const auto [slot, is_new] = texts_.try_emplace(text, texts_.size());
    if (is_new) table_.push_back(text);
    return slot->second;
  }

  void add_type(const std::string& type, const std::string& unit) {
    message_.add(kSampleType, ProtobufWriter().add(1, number_of_text(type)).add(2, number_of_text(unit)));
  }

  // pprof expects the innermost frame first.
  void add_stack(const EnergyStack& stack) {
    std::vector<std::uint64_t> locations;
    for (auto frame = stack.frames.rbegin(); frame != stack.frames.rend(); ++frame) {
      locations.push_back(location_of(*frame));
    }
    const auto whole = [](double value) { return static_cast<std::uint64_t>(std::llround(std::max(value, 0.0))); };
    const std::vector<std::uint64_t> values = {whole(stack.energy_j.value_or(0) * 1e6), whole(stack.time_s * 1e9),
                                               stack.count};
    message_.add(kSample, ProtobufWriter()
                              .add_packed(1, std::span<const std::uint64_t>(locations))
                              .add_packed(2, std::span<const std::uint64_t>(values)));
  }

  ProtobufWriter& message() { return message_; }

  std::string bytes() && {
    for (const std::string& text : table_) message_.add(kStringTable, text);
    return formats::gzip_compress(message_.bytes());
  }

 private:
  // Id of the frame, which has one function and one location. Adds them for a new name.
  std::uint64_t location_of(const std::string& frame) {
    const auto [slot, is_new] = locations_.try_emplace(frame, locations_.size() + 1);
    const std::uint64_t id = slot->second;
    if (!is_new) return id;
    const std::uint64_t name = number_of_text(frame);
    message_.add(kFunction, ProtobufWriter().add(1, id).add(2, name).add(3, name));
    message_.add(kLocation, ProtobufWriter().add(1, id).add(4, ProtobufWriter().add(1, id)));
    return id;
  }

  ProtobufWriter message_;
  std::map<std::string, std::uint64_t> texts_;
  std::vector<std::string> table_;
  std::map<std::string, std::uint64_t> locations_;
};

}  // namespace

Result<std::string> pprof_bytes(const RunView& view, const ExportOptions& query) {
  const Result<EnergyStacks> found = energy_stacks(view, query.by);
  if (!found) return found.error();
  Profile profile;
  profile.add_type("energy", "uJ");
  profile.add_type("time", "nanoseconds");
  profile.add_type("calls", "count");
  for (const EnergyStack& stack : found->stacks) profile.add_stack(stack);
  ProtobufWriter& message = profile.message();
  if (view.run.start_unix_ns) message.add(kTimeNanos, *view.run.start_unix_ns);
  message.add(kDurationNanos, static_cast<std::int64_t>(std::llround(view.run.elapsed_s * 1e9)));
  message.add(kDefaultSampleType, profile.number_of_text("energy"));
  message.add(kComment, profile.number_of_text(command_text(view.run)));
  if (found->missing_energy_count > 0) {
    message.add(kComment, profile.number_of_text(fmt::format("{} rows have time but no energy: unknown, not 0",
                                                             found->missing_energy_count)));
  }
  return std::move(profile).bytes();
}

}  // namespace joulemap::report
