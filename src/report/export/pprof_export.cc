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
constexpr std::uint32_t kSampleTypeField = 1;
constexpr std::uint32_t kSampleField = 2;
constexpr std::uint32_t kLocationField = 4;
constexpr std::uint32_t kFunctionField = 5;
constexpr std::uint32_t kStringTableField = 6;
constexpr std::uint32_t kTimeNanosField = 9;
constexpr std::uint32_t kDurationNanosField = 10;
constexpr std::uint32_t kCommentField = 13;
constexpr std::uint32_t kDefaultSampleTypeField = 14;

class PprofProfile {
 public:
  PprofProfile() { intern_text(""); }  // the format requires that string 0 is empty

  std::uint64_t intern_text(const std::string& text) {
    const auto [slot, is_new] = text_indices_.try_emplace(text, text_indices_.size());
    if (is_new) string_table_.push_back(text);
    return slot->second;
  }

  void add_sample_type(const std::string& type, const std::string& unit) {
    profile_message_.add(kSampleTypeField, ProtobufWriter().add(1, intern_text(type)).add(2, intern_text(unit)));
  }

  // pprof expects the innermost frame first.
  void add_stack(const EnergyStack& stack) {
    std::vector<std::uint64_t> locations;
    for (auto frame = stack.frames.rbegin(); frame != stack.frames.rend(); ++frame) {
      locations.push_back(find_or_add_location(*frame));
    }
    const auto rounded_value = [](double value) {
      return static_cast<std::uint64_t>(std::llround(std::max(value, 0.0)));
    };
    const std::vector<std::uint64_t> values = {rounded_value(stack.energy_j.value_or(0) * 1e6),
                                               rounded_value(stack.time_s * 1e9), stack.call_count};
    profile_message_.add(kSampleField, ProtobufWriter()
                                           .add_packed(1, std::span<const std::uint64_t>(locations))
                                           .add_packed(2, std::span<const std::uint64_t>(values)));
  }

  ProtobufWriter& profile_message() { return profile_message_; }

  std::string compressed_bytes() && {
    for (const std::string& text : string_table_) profile_message_.add(kStringTableField, text);
    return formats::gzip_compress(profile_message_.bytes());
  }

 private:
  // Id of the frame, which has one function and one location. Adds them for a new name.
  std::uint64_t find_or_add_location(const std::string& frame) {
    const auto [slot, is_new] = location_ids_.try_emplace(frame, location_ids_.size() + 1);
    const std::uint64_t id = slot->second;
    if (!is_new) return id;
    const std::uint64_t name = intern_text(frame);
    profile_message_.add(kFunctionField, ProtobufWriter().add(1, id).add(2, name).add(3, name));
    profile_message_.add(kLocationField, ProtobufWriter().add(1, id).add(4, ProtobufWriter().add(1, id)));
    return id;
  }

  ProtobufWriter profile_message_;
  std::map<std::string, std::uint64_t> text_indices_;
  std::vector<std::string> string_table_;
  std::map<std::string, std::uint64_t> location_ids_;
};

}  // namespace

Result<std::string> pprof_bytes(const RunView& view, const ExportOptions& query) {
  const Result<EnergyStacks> level_stacks = energy_stacks(view, query.by);
  if (!level_stacks) return level_stacks.error();
  PprofProfile profile;
  profile.add_sample_type("energy", "uJ");
  profile.add_sample_type("time", "nanoseconds");
  profile.add_sample_type("calls", "count");
  for (const EnergyStack& stack : level_stacks->stacks) profile.add_stack(stack);
  ProtobufWriter& message = profile.profile_message();
  if (view.run.start_unix_ns) message.add(kTimeNanosField, *view.run.start_unix_ns);
  message.add(kDurationNanosField, static_cast<std::int64_t>(std::llround(view.run.elapsed_s * 1e9)));
  message.add(kDefaultSampleTypeField, profile.intern_text("energy"));
  message.add(kCommentField, profile.intern_text(command_text(view.run)));
  if (level_stacks->missing_energy_count > 0) {
    message.add(kCommentField, profile.intern_text(fmt::format("{} rows have time but no energy: unknown, not 0",
                                                               level_stacks->missing_energy_count)));
  }
  return std::move(profile).compressed_bytes();
}

}  // namespace joulemap::report
