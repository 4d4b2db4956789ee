// SPDX-License-Identifier: Apache-2.0
#include "cli/output.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdio>

#include "base/file_descriptor.h"
#include "base/small_file.h"

namespace joulemap::cli {
namespace {

Status write_all(int fd, std::string_view text, std::string_view name) {
  // A reader that has gone away is an error to report, not a reason to die: the command's exit code still has
  // to be passed on.
  std::signal(SIGPIPE, SIG_IGN);
  while (!text.empty()) {
    const ssize_t written = ::write(fd, text.data(), text.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return system_error("write to", name, errno);
    text.remove_prefix(static_cast<std::size_t>(written));
  }
  return Done{};
}

bool is_regular_or_new(const std::string& path) {
  struct stat status {};
  return ::lstat(path.c_str(), &status) != 0 || S_ISREG(status.st_mode);
}

}  // namespace

Status write_to(Stream stream, std::string_view text) {
  return stream == Stream::out ? write_all(STDOUT_FILENO, text, "stdout")
                               : write_all(STDERR_FILENO, text, "stderr");
}

Status write_to_file(const std::string& path, std::string_view text) {
  // /dev/null, a pipe, a link to somewhere: written to as they are, never replaced.
  const bool in_place = !is_regular_or_new(path);
  const std::string target = in_place ? path : fmt::format("{}.{}.partial", path, ::getpid());
  {
    const FileDescriptor fd(::open(target.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666));
    if (!fd.is_open()) return system_error("create", target, errno);
    if (Status status = write_all(fd.get(), text, path); !status) {
      if (!in_place) ::unlink(target.c_str());
      return status;
    }
  }
  if (!in_place && ::rename(target.c_str(), path.c_str()) != 0) return system_error("create", path, errno);
  return Done{};
}

}  // namespace joulemap::cli
