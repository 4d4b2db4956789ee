// SPDX-License-Identifier: Apache-2.0
#include "experiment/attempt_owner.h"

#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <climits>
#include <cstdlib>

#include "base/small_file.h"
#include "base/text.h"
#include "experiment/experiment_folder.h"

namespace joulemap::experiment {
namespace {

// A process number is used again one day; with the moment of its start it is not.
std::string start_of(std::string_view pid) {
  const Result<std::string> stat = read_small_file(fmt::format("/proc/{}/stat", pid));
  if (!stat) return {};
  // Behind the name, which may hold anything, the start is the 20th field.
  const std::size_t name_end = stat->rfind(')');
  if (name_end == std::string::npos) return {};
  const std::vector<std::string_view> fields = split_blanks(std::string_view(*stat).substr(name_end + 1));
  return fields.size() > 19 ? std::string(fields[19]) : std::string();
}

std::string boot_id() {
  const Result<std::string> id = read_small_file("/proc/sys/kernel/random/boot_id");
  return id ? std::string(trim(*id)) : std::string("-");
}

}  // namespace

std::string node_name() {
  // Several nodes of Slurm may share a machine, and one node of it may have another name than the machine.
  if (const char* const node = std::getenv("SLURMD_NODENAME")) return node;
  std::array<char, HOST_NAME_MAX + 1> name{};
  return ::gethostname(name.data(), name.size() - 1) == 0 ? name.data() : "";
}

Status write_owner(const std::string& attempt_path) {
  const std::string pid = fmt::format("{}", ::getpid());
  return replace_file(attempt_path + "/owner",
                      fmt::format("{} {} {} {}\n", boot_id(), pid, start_of(pid), node_name()));
}

OwnerState owner_state(const std::string& attempt_path) {
  const Result<std::string> text = read_small_file(attempt_path + "/owner");
  if (!text) return OwnerState::gone;
  const std::vector<std::string_view> words = split_blanks(*text);
  if (words.size() < 3) return OwnerState::gone;
  if (words[0] != boot_id()) return OwnerState::elsewhere;
  return start_of(words[1]) == words[2] ? OwnerState::at_work : OwnerState::gone;
}

}  // namespace joulemap::experiment
