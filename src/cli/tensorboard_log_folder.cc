// SPDX-License-Identifier: Apache-2.0
#include "cli/tensorboard_log_folder.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cerrno>

#include "base/clock.h"
#include "base/file_descriptor.h"
#include "base/output_file.h"
#include "base/private_files.h"
#include "base/small_file.h"

namespace joulemap::cli {
namespace {

constexpr int kMaxFileNameAttempts = 1000;

// Makes a host name safe as part of a file name: replaces all but letters, digits and "-" by "_".
std::string to_safe_file_name(std::string_view host) {
  std::string out;
  for (const char c : host.substr(0, 64)) {
    const bool is_plain = std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '-';
    out += is_plain ? c : '_';
  }
  return out.empty() ? "host" : out;
}

}  // namespace

Result<TensorboardLogFolder> TensorboardLogFolder::open(const std::string& path) {
  if (Status folder_status = make_private_folders(path); !folder_status) return std::move(folder_status).error();
  const Result<std::vector<std::string>> names = list_directory(path);
  if (!names) return names.error();
  const auto is_events_file = [](const std::string& name) { return name.find("tfevents") != std::string::npos; };
  return TensorboardLogFolder(path, std::ranges::any_of(*names, is_events_file));
}

// The name begins with the current time, because TensorBoard reads the files of a folder in the order of their names.
Result<std::string> TensorboardLogFolder::add_file(std::string_view host, std::string_view content) const {
  const std::int64_t now_s = unix_ns() / kNanosecondsPerSecond;
  for (int i = 0; i < kMaxFileNameAttempts; ++i) {
    const std::string name =
        fmt::format("{}/events.out.tfevents.{:010}.{}.{}.joulemap", path_, now_s, to_safe_file_name(host), i);
    // Reserves the name with an empty file, then replaces it atomically: TensorBoard never reads a partial file.
    const FileDescriptor created(::open(name.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, kPrivateFileMode));
    if (!created.is_open() && errno == EEXIST) continue;
    if (!created.is_open()) return system_error("create", name, errno);
    if (const Status write_status = replace_file_nofollow(name, content); !write_status) {
      ::unlink(name.c_str());
      return write_status.error();
    }
    return name;
  }
  return Error{ErrorCode::io, fmt::format("{}: too many event files in this second", path_), "try again"};
}

}  // namespace joulemap::cli
