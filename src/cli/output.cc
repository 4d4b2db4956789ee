// SPDX-License-Identifier: Apache-2.0
#include "cli/output.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>

#include "base/private_files.h"
#include "base/small_file.h"
#include "base/write_fully.h"

namespace joulemap::cli {

Status write_to(Stream stream, std::string_view text) {
  return stream == Stream::out ? write_fully(STDOUT_FILENO, text, "stdout")
                               : write_fully(STDERR_FILENO, text, "stderr");
}

Result<OutputFile> OutputFile::open(const std::string& path) {
  FileDescriptor fd(::open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, kPrivateFile));
  if (!fd.is_open()) return system_error("create", path, errno);
  return OutputFile(path, std::move(fd));
}

Status OutputFile::replace_content(std::string_view text) {
  // EINVAL: a pipe or a device, which has no content to replace.
  if (::ftruncate(fd_.get(), 0) != 0 && errno != EINVAL) return system_error("empty", path_, errno);
  return write_fully(fd_.get(), text, path_);
}

Status write_to_file_or_stdout(const std::string& path, std::string_view text) {
  if (path.empty()) return write_to(Stream::out, text);
  Result<OutputFile> file = OutputFile::open(path);
  if (!file) return std::move(file).error();
  return file->replace_content(text);
}

}  // namespace joulemap::cli
