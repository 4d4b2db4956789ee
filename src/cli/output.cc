// SPDX-License-Identifier: Apache-2.0
#include "cli/output.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>

#include "base/printable_text.h"
#include "base/small_file.h"
#include "base/write_fully.h"

namespace joulemap::cli {

Status write_to(Stream stream, std::string_view text) {
  const std::string shown = printable_lines(text);
  return stream == Stream::out ? write_fully(STDOUT_FILENO, shown, "stdout")
                               : write_fully(STDERR_FILENO, shown, "stderr");
}

Result<OutputFile> OutputFile::open(const std::string& path) {
  FileDescriptor fd(::open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0666));
  if (!fd.is_open()) return system_error("create", path, errno);
  return OutputFile(path, std::move(fd));
}

Status OutputFile::replace_content(std::string_view text) {
  // EINVAL: a pipe or a device, which has no content to replace.
  if (::ftruncate(fd_.get(), 0) != 0 && errno != EINVAL) return system_error("empty", path_, errno);
  return write_fully(fd_.get(), text, path_);
}

Status write_to_file_or_stdout(const std::string& path, std::string_view text) {
  return write_bytes_to_file_or_stdout(path, printable_lines(text));
}

Status write_bytes_to_file_or_stdout(const std::string& path, std::string_view bytes) {
  if (path.empty()) return write_fully(STDOUT_FILENO, bytes, "stdout");
  Result<OutputFile> file = OutputFile::open(path);
  if (!file) return std::move(file).error();
  return file->replace_content(bytes);
}

}  // namespace joulemap::cli
