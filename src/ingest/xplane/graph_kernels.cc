// SPDX-License-Identifier: Apache-2.0
#include "ingest/xplane/graph_kernels.h"

#include <cctype>
#include <set>

namespace joulemap::ingest {
namespace {

// Limit of comparisons: two lists that do not match anywhere would take quadratic time.
constexpr std::size_t kMaxMatchAttempts = 2'000'000;

class Match {
 public:
  Match(std::span<const std::string_view> kernels, std::span<const std::string_view> schedule) : schedule_(schedule) {
    std::set<std::string> of_kernels;
    for (const std::string_view kernel : kernels) of_kernels.insert(kernel_stem(kernel));
    std::set<std::string> of_schedule;
    for (const std::string_view name : schedule) {
      stems_.push_back(kernel_stem(name));
      of_schedule.insert(stems_.back());
      is_named_.push_back(of_kernels.contains(stems_.back()));
    }
    for (const std::string_view kernel : kernels) {
      kernels_.push_back(kernel_stem(kernel));
      is_of_library_.push_back(!of_schedule.contains(kernels_.back()));
    }
  }

  std::optional<KernelGraphMatch> at(std::size_t begin) {
    KernelGraphMatch match;
    std::size_t next = begin;
    for (std::size_t i = 0; i < kernels_.size(); ++i) {
      if (++steps_ > kMaxMatchAttempts) return std::nullopt;
      if (is_of_library_[i]) {
        const bool has_own = next < schedule_.size() && !is_named_[next];
        if (!has_own && match.instructions.empty()) return std::nullopt;
        match.instructions.push_back(has_own ? schedule_[next++] : match.instructions.back());
        continue;
      }
      // Skips instructions that call a library but have no kernel in the trace.
      while (i > 0 && next < schedule_.size() && !is_named_[next]) ++next;
      if (next == schedule_.size() || stems_[next] != kernels_[i]) return std::nullopt;
      match.instructions.push_back(schedule_[next++]);
      ++match.name_match_count;
    }
    if (match.name_match_count == 0) return std::nullopt;
    match.schedule_end = next;
    return match;
  }

 private:
  std::span<const std::string_view> schedule_;
  std::vector<std::string> stems_;    // stems of the instructions in the schedule
  std::vector<bool> is_named_;        // by instruction of the schedule: some kernel is named after it
  std::vector<std::string> kernels_;  // stems of the kernels
  std::vector<bool> is_of_library_;
  std::size_t steps_ = 0;
};

}  // namespace

std::string kernel_stem(std::string_view name) {
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

std::optional<KernelGraphMatch> match_graph(std::span<const std::string_view> kernels,
                                            std::span<const std::string_view> schedule, std::size_t from) {
  if (kernels.empty() || kernels.size() > kMaxMatchAttempts || schedule.size() > kMaxMatchAttempts) return std::nullopt;
  Match match(kernels, schedule);
  for (std::size_t begin = from; begin < schedule.size(); ++begin) {
    if (std::optional<KernelGraphMatch> found = match.at(begin)) return found;
  }
  return std::nullopt;
}

}  // namespace joulemap::ingest
