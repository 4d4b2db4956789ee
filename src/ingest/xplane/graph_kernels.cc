// SPDX-License-Identifier: Apache-2.0
#include "ingest/xplane/graph_kernels.h"

#include <cctype>
#include <set>

namespace joulemap::ingest {
namespace {

// Limit of comparisons: two lists that do not match anywhere would take quadratic time.
constexpr std::size_t kMaxMatchAttempts = 2'000'000;

class ScheduleMatcher {
 public:
  ScheduleMatcher(std::span<const std::string_view> kernels, std::span<const std::string_view> schedule)
      : scheduled_names_(schedule) {
    std::set<std::string> distinct_kernel_stems;
    for (const std::string_view kernel : kernels) distinct_kernel_stems.insert(name_without_number(kernel));
    std::set<std::string> distinct_schedule_stems;
    for (const std::string_view name : schedule) {
      schedule_stems_.push_back(name_without_number(name));
      distinct_schedule_stems.insert(schedule_stems_.back());
      has_kernel_of_same_stem_.push_back(distinct_kernel_stems.contains(schedule_stems_.back()));
    }
    for (const std::string_view kernel : kernels) {
      kernel_stems_.push_back(name_without_number(kernel));
      is_library_kernel_.push_back(!distinct_schedule_stems.contains(kernel_stems_.back()));
    }
  }

  std::optional<KernelGraphMatch> at(std::size_t begin) {
    KernelGraphMatch match;
    std::size_t schedule_index = begin;
    for (std::size_t i = 0; i < kernel_stems_.size(); ++i) {
      if (++match_attempts_ > kMaxMatchAttempts) return std::nullopt;
      if (is_library_kernel_[i]) {
        const bool has_own_kernel =
            schedule_index < scheduled_names_.size() && !has_kernel_of_same_stem_[schedule_index];
        if (!has_own_kernel && match.instruction_by_kernel.empty()) return std::nullopt;
        match.instruction_by_kernel.push_back(has_own_kernel ? scheduled_names_[schedule_index++]
                                                             : match.instruction_by_kernel.back());
        continue;
      }
      // Skips instructions that call a library but have no kernel in the trace.
      while (i > 0 && schedule_index < scheduled_names_.size() && !has_kernel_of_same_stem_[schedule_index])
        ++schedule_index;
      if (schedule_index == scheduled_names_.size() || schedule_stems_[schedule_index] != kernel_stems_[i])
        return std::nullopt;
      match.instruction_by_kernel.push_back(scheduled_names_[schedule_index++]);
      ++match.name_match_count;
    }
    if (match.name_match_count == 0) return std::nullopt;
    match.schedule_end_index = schedule_index;
    return match;
  }

 private:
  std::span<const std::string_view> scheduled_names_;
  std::vector<std::string> schedule_stems_;    // stems of the instructions in the schedule
  std::vector<bool> has_kernel_of_same_stem_;  // for each instruction of the schedule: whether a kernel has its stem
  std::vector<std::string> kernel_stems_;      // stems of the kernels
  std::vector<bool> is_library_kernel_;
  std::size_t match_attempts_ = 0;
};

}  // namespace

std::string name_without_number(std::string_view name) {
  const std::size_t digits = name.find_last_not_of("0123456789");
  if (digits != std::string_view::npos && digits > 0 && (name[digits] == '.' || name[digits] == '_')) {
    name = name.substr(0, digits);
  }
  std::string stem(name);
  for (char& c : stem) {
    if (std::isalnum(static_cast<unsigned char>(c)) == 0) c = '_';
  }
  return stem;
}

std::optional<KernelGraphMatch> match_graph_to_schedule(std::span<const std::string_view> kernels,
                                                        std::span<const std::string_view> schedule,
                                                        std::size_t schedule_begin) {
  if (kernels.empty() || kernels.size() > kMaxMatchAttempts || schedule.size() > kMaxMatchAttempts) return std::nullopt;
  ScheduleMatcher match(kernels, schedule);
  for (std::size_t begin = schedule_begin; begin < schedule.size(); ++begin) {
    if (std::optional<KernelGraphMatch> graph_match = match.at(begin)) return graph_match;
  }
  return std::nullopt;
}

}  // namespace joulemap::ingest
