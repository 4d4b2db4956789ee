// SPDX-License-Identifier: Apache-2.0
#include "base/small_file.h"

#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cerrno>
#include <climits>
#include <cstring>
#include <memory>

#include "base/check.h"
#include "base/text.h"

namespace joulemap {
namespace {

constexpr std::size_t kMaxSmallFileBytes = 1 << 20;

ErrorCode error_code_of_errno(int error_number) {
  switch (error_number) {
    case ENOENT:
    case ENOTDIR:
    case ENODEV:
    case ENXIO:
      return ErrorCode::not_found;
    case EACCES:
    case EPERM:
      return ErrorCode::permission;
    case ENOSYS:
    case EOPNOTSUPP:
      return ErrorCode::unsupported;
    default:
      return ErrorCode::io;
  }
}

std::size_t count_digits_at(std::string_view text, std::size_t position) {
  std::size_t end = position;
  while (end < text.size() && std::isdigit(static_cast<unsigned char>(text[end]))) ++end;
  return end - position;
}

Result<std::string> read_fd_content(int fd, const std::string& path, std::size_t max_bytes) {
  std::string content;
  std::array<char, 4096> buffer;
  while (content.size() < max_bytes) {
    const ssize_t read_size = ::read(fd, buffer.data(), std::min(buffer.size(), max_bytes - content.size()));
    if (read_size < 0 && errno == EINTR) continue;
    if (read_size < 0) return system_error("read", path, errno);
    if (read_size == 0) break;
    content.append(buffer.data(), static_cast<std::size_t>(read_size));
  }
  return content;
}

}  // namespace

Error system_error(std::string_view action, std::string_view path, int error_number) {
  return {error_code_of_errno(error_number), fmt::format("{} {}: {}", action, path, std::strerror(error_number)), {}};
}

Result<FileDescriptor> open_for_reading(const std::string& path) {
  // O_NONBLOCK: a FIFO in place of a sensor file must not block the tool; regular files ignore the flag.
  FileDescriptor fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (!fd.is_open()) return system_error("open", path, errno);
  return fd;
}

bool is_relative_path_without_parent(std::string_view path) {
  if (path.empty() || path.front() == '/' || path.find('\0') != std::string_view::npos) return false;
  const std::vector<std::string_view> names = split(path, '/');
  return std::find(names.begin(), names.end(), "..") == names.end();
}

// Opens component by component, because O_NOFOLLOW affects only the last one, and older kernels lack openat2.
Result<std::string> read_file_beneath(const std::string& folder, std::string_view path, std::size_t max_bytes) {
  JOULEMAP_CHECK(is_relative_path_without_parent(path), "a path beneath a folder");
  const std::string full_path = fmt::format("{}/{}", folder, path);
  FileDescriptor fd(::open(folder.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  const std::vector<std::string_view> names = split(path, '/');
  for (std::size_t i = 0; i < names.size() && fd.is_open(); ++i) {
    const int kind = i + 1 < names.size() ? O_PATH | O_DIRECTORY : O_RDONLY | O_NONBLOCK;
    const std::string name(names[i].empty() ? "." : names[i]);
    fd = FileDescriptor(::openat(fd.get(), name.c_str(), kind | O_NOFOLLOW | O_CLOEXEC));
  }
  if (!fd.is_open()) {
    if (errno != ELOOP) return system_error("open", full_path, errno);
    return Error{ErrorCode::permission, fmt::format("open {}: symbolic links are not followed here", full_path),
                 "replace the link with the file itself"};
  }
  struct stat status {};
  if (::fstat(fd.get(), &status) != 0) return system_error("stat", full_path, errno);
  if (!S_ISREG(status.st_mode))
    return Error{ErrorCode::malformed, fmt::format("{} is not a regular file", full_path), {}};
  return read_fd_content(fd.get(), full_path, max_bytes);
}

Result<std::string> read_file_start(const std::string& path, std::size_t max_bytes) {
  const Result<FileDescriptor> fd = open_for_reading(path);
  if (!fd) return fd.error();
  return read_fd_content(fd->get(), path, max_bytes);
}

Result<std::string> read_small_file(const std::string& path) {
  Result<std::string> content = read_file_start(path, kMaxSmallFileBytes + 1);
  if (content && content->size() > kMaxSmallFileBytes) {
    return Error{ErrorCode::malformed, fmt::format("read {}: larger than 1 MiB", path), {}};
  }
  return content;
}

Result<std::vector<std::string>> list_directory(const std::string& path) {
  const std::unique_ptr<DIR, int (*)(DIR*)> directory(::opendir(path.c_str()), ::closedir);
  if (!directory) return system_error("list", path, errno);
  std::vector<std::string> names;
  errno = 0;
  while (const dirent* entry = ::readdir(directory.get())) {
    const std::string_view name = entry->d_name;
    if (name != "." && name != "..") names.emplace_back(name);
  }
  if (errno != 0) return system_error("list", path, errno);
  std::sort(names.begin(), names.end(), natural_less);
  return names;
}

bool natural_less(std::string_view a, std::string_view b) {
  std::size_t i = 0;
  std::size_t j = 0;
  while (i < a.size() && j < b.size()) {
    const std::size_t digit_count_a = count_digits_at(a, i);
    const std::size_t digit_count_b = count_digits_at(b, j);
    if (digit_count_a > 0 && digit_count_b > 0) {
      if (digit_count_a != digit_count_b) return digit_count_a < digit_count_b;
      const int order = a.substr(i, digit_count_a).compare(b.substr(j, digit_count_b));
      if (order != 0) return order < 0;
      i += digit_count_a;
      j += digit_count_b;
    } else {
      if (a[i] != b[j]) return a[i] < b[j];
      ++i;
      ++j;
    }
  }
  return a.size() - i < b.size() - j;
}

bool file_exists(const std::string& path) { return ::access(path.c_str(), F_OK) == 0; }

std::string link_target_name(const std::string& path) {
  std::array<char, PATH_MAX> target;
  const ssize_t length = ::readlink(path.c_str(), target.data(), target.size());
  if (length <= 0) return {};
  const std::string_view target_path(target.data(), static_cast<std::size_t>(length));
  return std::string(target_path.substr(target_path.rfind('/') + 1));
}

}  // namespace joulemap
