// SPDX-License-Identifier: Apache-2.0
#include "experiment/run/attempt_owner.h"

#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <cctype>
#include <climits>
#include <cstdlib>

#include "base/process_identity.h"
#include "base/small_file.h"
#include "base/text.h"
#include "experiment/run/experiment_folder.h"

namespace joulemap::experiment {
namespace {

// The name becomes part of file names in the experiment's folder, and a word in the owner file.
std::string to_file_name(std::string_view node) {
  std::string name(node.substr(0, HOST_NAME_MAX));
  for (char& c : name) {
    const bool is_plain = std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '.' || c == '-' || c == '_';
    if (!is_plain) c = '_';
  }
  return name;
}

}  // namespace

std::string current_node_name() {
  // Several Slurm nodes can share a machine, and a node name can differ from the host name.
  if (const char* const node = std::getenv("SLURMD_NODENAME")) return to_file_name(node);
  std::array<char, HOST_NAME_MAX + 1> name{};
  return ::gethostname(name.data(), name.size() - 1) == 0 ? to_file_name(name.data()) : "";
}

Status write_owner(const std::string& attempt_path) {
  return replace_file_nofollow(attempt_path + "/owner",
                               fmt::format("{} {}\n", this_process_identity(), current_node_name()));
}

AttemptOwnerState read_attempt_owner_state(const std::string& attempt_path) {
  const Result<std::string> text = read_small_file(attempt_path + "/owner");
  if (!text) return AttemptOwnerState::exited;
  const std::vector<std::string_view> words = split_whitespace(*text);
  if (words.size() < 4) return AttemptOwnerState::exited;  // cut off: its process was killed while it wrote
  switch (owner_process_state(fmt::format("{} {} {} {}", words[0], words[1], words[2], words[3]))) {
    case OwnerProcessState::running:
      return AttemptOwnerState::running;
    case OwnerProcessState::ended:
      return AttemptOwnerState::exited;
    case OwnerProcessState::not_local:
      break;
  }
  return AttemptOwnerState::unknown;
}

}  // namespace joulemap::experiment
