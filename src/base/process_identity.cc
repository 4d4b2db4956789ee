// SPDX-License-Identifier: Apache-2.0
#include "base/process_identity.h"

#include <fmt/format.h>
#include <signal.h>
#include <unistd.h>

#include <cerrno>
#include <limits>

#include "base/small_file.h"
#include "base/text.h"

namespace joulemap {
namespace {

constexpr std::size_t kIdentityWordCount = 4;

// PID namespace of this process, such as "pid:[4026531836]"; "-" if /proc does not show it.
std::string pid_namespace() {
  const std::string name = link_target_name("/proc/self/ns/pid");
  return name.empty() ? "-" : name;
}

// Whether the process exists. EPERM means that it does, but belongs to another user, who may be hidden in /proc.
bool does_process_exist(std::string_view pid) {
  const std::optional<std::uint64_t> number = parse_u64(pid);
  if (!number || *number == 0 || *number > static_cast<std::uint64_t>(std::numeric_limits<pid_t>::max())) return false;
  return ::kill(static_cast<pid_t>(*number), 0) == 0 || errno == EPERM;
}

}  // namespace

std::string boot_id() {
  const Result<std::string> id = read_small_file("/proc/sys/kernel/random/boot_id");
  return id ? std::string(trim(*id)) : std::string("-");
}

std::string process_start_ticks_text(std::string_view pid) {
  const Result<std::string> stat_text = read_small_file(fmt::format("/proc/{}/stat", pid));
  if (!stat_text) return {};
  // The start time is the 20th field after the name, which may contain any character.
  const std::size_t name_end = stat_text->rfind(')');
  if (name_end == std::string::npos) return {};
  const std::vector<std::string_view> fields = split_whitespace(std::string_view(*stat_text).substr(name_end + 1));
  return fields.size() > 19 ? std::string(fields[19]) : std::string();
}

std::string this_process_identity() {
  const std::string start = process_start_ticks_text("self");
  return fmt::format("{} {} {} {}", boot_id(), ::getpid(), start.empty() ? "-" : start, pid_namespace());
}

OwnerProcessState owner_process_state(std::string_view identity) {
  const std::vector<std::string_view> words = split_whitespace(identity);
  if (words.size() != kIdentityWordCount || words[0] != boot_id() || words[3] != pid_namespace()) {
    return OwnerProcessState::not_local;
  }
  if (!does_process_exist(words[1])) return OwnerProcessState::ended;
  const std::string start = process_start_ticks_text(words[1]);
  return start.empty() || start == words[2] ? OwnerProcessState::running : OwnerProcessState::ended;
}

}  // namespace joulemap
