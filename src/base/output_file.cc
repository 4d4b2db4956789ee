// SPDX-License-Identifier: Apache-2.0
#include "base/output_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <linux/magic.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <optional>

#include "base/private_files.h"
#include "base/small_file.h"
#include "base/write_fully.h"

namespace joulemap {
namespace {

namespace fs = std::filesystem;

constexpr int kMaxSymbolicLinks = 40;  // limit of the Linux kernel
constexpr int kMaxTemporaryNameTries = 1000;

std::string parent_folder(const std::string& path) {
  const std::string folder = fs::path(path).parent_path().string();
  return folder.empty() ? "." : folder;
}

std::optional<struct stat> read_file_status(const std::string& path) {
  struct stat status {};
  const int stat_result = path == "-" ? ::fstat(STDIN_FILENO, &status) : ::stat(path.c_str(), &status);
  return stat_result == 0 ? std::optional(status) : std::nullopt;
}

bool is_same_file(const struct stat& a, const struct stat& b) { return a.st_dev == b.st_dev && a.st_ino == b.st_ino; }

// A procfs name denotes a file that is already open and cannot be replaced.
bool is_procfs_path(const std::string& path) {
  struct statfs system {};
  return ::statfs(parent_folder(path).c_str(), &system) == 0 && system.f_type == PROC_SUPER_MAGIC;
}

// Whether another user placed this link or file in a world-writable folder. Such a link redirects our output to a file
// of their choice; such a file keeps its owner, who could read our output. The kernel refuses both if configured to
// (protected_symlinks and protected_regular, proc(5)). We resolve links and replace files ourselves, so we refuse on
// every machine.
bool has_untrusted_owner(const std::string& path) {
  struct stat entry {};
  struct stat folder {};
  if (::lstat(path.c_str(), &entry) != 0 || !(S_ISLNK(entry.st_mode) || S_ISREG(entry.st_mode))) return false;
  if (::stat(parent_folder(path).c_str(), &folder) != 0 || (folder.st_mode & S_IWOTH) == 0) return false;
  return entry.st_uid != ::geteuid() && entry.st_uid != folder.st_uid;
}

struct ResolvedPath {
  std::string path;
  bool is_in_procfs = false;  // reached through procfs
};

ResolvedPath follow_symbolic_links(std::string path) {
  for (int links = 0; links < kMaxSymbolicLinks; ++links) {
    if (is_procfs_path(path)) return {std::move(path), true};
    if (has_untrusted_owner(path)) break;
    std::error_code error;
    const fs::path target = fs::read_symlink(path, error);
    if (error) break;
    path = target.is_absolute() ? target.string() : (fs::path(parent_folder(path)) / target).string();
  }
  return {std::move(path), false};
}

// Whether `folder` is `outer_status` or lies inside it.
bool is_inside_folder(const std::string& folder, const struct stat& outer_status) {
  std::error_code error;
  fs::path ancestor = fs::canonical(folder, error);
  while (!error && !ancestor.empty()) {
    const std::optional<struct stat> status = read_file_status(ancestor.string());
    if (status && is_same_file(*status, outer_status)) return true;
    if (ancestor == ancestor.parent_path()) break;
    ancestor = ancestor.parent_path();
  }
  return false;
}

// Returns why the target cannot be replaced, before the work starts.
Status check_replaceable(const std::string& path, const std::string& target,
                         const std::optional<struct stat>& older_status) {
  if (target.ends_with('/')) return system_error("create", path, EISDIR);
  if (older_status && ::faccessat(AT_FDCWD, target.c_str(), W_OK, AT_EACCESS) != 0)
    return system_error("open", path, errno);
  if (::faccessat(AT_FDCWD, parent_folder(target).c_str(), W_OK | X_OK, AT_EACCESS) == 0) return Done{};
  if (older_status && older_status->st_size == 0) return Done{};  // no content to lose: written in place
  Error error = system_error("create", path, errno);
  if (older_status) {
    error.message = fmt::format("cannot replace {}: {} is not writable", path, parent_folder(target));
    error.remedy = "choose a file in another folder; joulemap writes the new content next to the old file first";
  }
  return error;
}

struct TemporaryFile {
  std::string path;
  FileDescriptor fd;
};

// The name is independent of the target's name, which may already have the maximal length.
Result<TemporaryFile> create_temporary_file_near(const std::string& target) {
  for (int number = 0; number < kMaxTemporaryNameTries; ++number) {
    std::string path = fmt::format("{}/.joulemap-{}-{}.tmp", parent_folder(target), ::getpid(), number);
    FileDescriptor fd(::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, kPrivateFileMode));
    if (fd.is_open()) return TemporaryFile{std::move(path), std::move(fd)};
    if (errno != EEXIST) return system_error("create", path, errno);
  }
  return Error{ErrorCode::io, fmt::format("{} contains too many unfinished files", parent_folder(target)),
               fmt::format("remove them: rm {}/.joulemap-*.tmp", parent_folder(target))};
}

Status write_and_rename_file(const TemporaryFile& temporary_file, std::string_view content, const std::string& path,
                             const std::optional<struct stat>& older_status) {
  if (Status write_status = write_fully(temporary_file.fd.get(), content, path); !write_status) return write_status;
  if (older_status) {
    // Only root can change the owner, so a failure is ignored; the permissions must be set.
    static_cast<void>(::fchown(temporary_file.fd.get(), older_status->st_uid, older_status->st_gid));
    if (::fchmod(temporary_file.fd.get(), older_status->st_mode & 0777) != 0)
      return system_error("set permissions of", path, errno);
  }
  if (::fsync(temporary_file.fd.get()) != 0 && errno != EINVAL && errno != EROFS)
    return system_error("sync", path, errno);
  return Done{};
}

Status overwrite_in_place(const std::string& target, std::string_view content, const std::string& path) {
  const FileDescriptor fd(::open(target.c_str(), O_WRONLY | O_CLOEXEC | O_NOFOLLOW));
  if (!fd.is_open()) return system_error("open", path, errno);
  return write_fully(fd.get(), content, path);
}

}  // namespace

std::string resolve_links(const std::string& path) { return follow_symbolic_links(path).path; }

Status check_trusted_file_owner(const std::string& path) {
  const std::string target = resolve_links(path);
  if (!has_untrusted_owner(target)) return Done{};
  return Error{ErrorCode::usage, fmt::format("{} belongs to another user and is in a world-writable folder", target),
               "choose a file in a folder of your own"};
}

Status check_output_is_not_input(const std::string& output, std::span<const std::string> inputs) {
  const std::string target = resolve_links(output);
  const std::optional<struct stat> older_status = read_file_status(target);
  if (older_status && !S_ISREG(older_status->st_mode) && !S_ISDIR(older_status->st_mode)) return Done{};
  for (const std::string& input : inputs) {
    const std::optional<struct stat> input_status = read_file_status(input);
    if (!input_status) continue;
    const std::string remedy = "choose another output file";
    if (older_status && is_same_file(*older_status, *input_status)) {
      return Error{ErrorCode::usage, fmt::format("{} is an input of this command and would be overwritten", output),
                   remedy};
    }
    if (S_ISDIR(input_status->st_mode) && is_inside_folder(parent_folder(target), *input_status)) {
      return Error{ErrorCode::usage, fmt::format("{} is inside {}, which is an input of this command", output, input),
                   remedy};
    }
  }
  return Done{};
}

Result<OutputFile> OutputFile::open(const std::string& path, std::span<const std::string> inputs) {
  if (Status owner_check = check_trusted_file_owner(path); !owner_check) return std::move(owner_check).error();
  if (Status input_check = check_output_is_not_input(path, inputs); !input_check) return std::move(input_check).error();
  ResolvedPath resolved = follow_symbolic_links(path);
  const std::optional<struct stat> older_status = read_file_status(resolved.path);
  if (older_status && S_ISDIR(older_status->st_mode)) return system_error("create", path, EISDIR);
  if (resolved.is_in_procfs || (older_status && !S_ISREG(older_status->st_mode))) {
    FileDescriptor direct_fd(::open(path.c_str(), O_WRONLY | O_APPEND | O_CLOEXEC));
    if (!direct_fd.is_open()) return system_error("open", path, errno);
    return OutputFile(path, std::move(resolved.path), std::move(direct_fd));
  }
  if (Status replace_check = check_replaceable(path, resolved.path, older_status); !replace_check)
    return std::move(replace_check).error();
  return OutputFile(path, std::move(resolved.path), FileDescriptor());
}

Status OutputFile::replace_content(std::string_view content) {
  if (direct_fd_.is_open()) return write_fully(direct_fd_.get(), content, path_);
  const std::optional<struct stat> older_status = read_file_status(target_);
  const bool is_empty = older_status && older_status->st_size == 0;
  Result<TemporaryFile> temporary_file = create_temporary_file_near(target_);
  if (!temporary_file && is_empty) return overwrite_in_place(target_, content, path_);
  if (!temporary_file) return std::move(temporary_file).error();
  Status write_status = write_and_rename_file(*temporary_file, content, path_, older_status);
  if (write_status && ::rename(temporary_file->path.c_str(), target_.c_str()) != 0) {
    // A file that is a mount point cannot be replaced; an empty one has no content to lose.
    Error rename_error = system_error("replace", path_, errno);
    rename_error.remedy = "choose a file that does not exist yet, or a file in a folder of your own";
    write_status = is_empty ? overwrite_in_place(target_, content, path_) : Status(std::move(rename_error));
  } else if (write_status) {
    return write_status;
  }
  ::unlink(temporary_file->path.c_str());
  return write_status;
}

Status replace_file(const std::string& path, std::string_view content) {
  Result<OutputFile> file = OutputFile::open(path);
  if (!file) return std::move(file).error();
  return file->replace_content(content);
}

Status replace_file_nofollow(const std::string& path, std::string_view content) {
  Result<TemporaryFile> temporary_file = create_temporary_file_near(path);
  if (!temporary_file) return std::move(temporary_file).error();
  Status write_status = write_and_rename_file(*temporary_file, content, path, std::nullopt);
  if (write_status && ::rename(temporary_file->path.c_str(), path.c_str()) == 0) return write_status;
  if (write_status) write_status = system_error("replace", path, errno);
  ::unlink(temporary_file->path.c_str());
  return write_status;
}

}  // namespace joulemap
