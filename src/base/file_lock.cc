// SPDX-License-Identifier: Apache-2.0
#include "base/file_lock.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <thread>
#include <utility>

#include "base/private_files.h"
#include "base/process_identity.h"
#include "base/small_file.h"
#include "base/write_fully.h"

namespace joulemap {
namespace {

constexpr int kMaxOwnerFiles = 10'000;
constexpr std::chrono::milliseconds kLockPollPeriod{10};

bool is_flock_unsupported(int error_number) {
  return error_number == ENOLCK || error_number == EOPNOTSUPP || error_number == ENOTSUP || error_number == ENOSYS;
}

int flock_with_eintr_retry(FileLock::FlockFunction lock, int fd) {
  int result = lock(fd, LOCK_EX | LOCK_NB);
  while (result != 0 && errno == EINTR) result = lock(fd, LOCK_EX | LOCK_NB);
  return result;
}

enum class LockOwnerFileState { held, ended, removed };

// A file without a complete identity counts as held: its owner may still be writing it.
LockOwnerFileState read_owner_file_state(const std::string& path, LockScope scope) {
  const Result<std::string> identity = read_small_file(path);
  if (!identity)
    return identity.error().code == ErrorCode::not_found ? LockOwnerFileState::removed : LockOwnerFileState::held;
  switch (owner_process_state(*identity)) {
    case OwnerProcessState::running:
      return LockOwnerFileState::held;
    case OwnerProcessState::ended:
      return LockOwnerFileState::ended;
    case OwnerProcessState::not_local:
      break;
  }
  const bool is_from_other_boot = !identity->empty() && !identity->starts_with(boot_id());
  return scope == LockScope::machine && is_from_other_boot ? LockOwnerFileState::ended : LockOwnerFileState::held;
}

Error make_lock_held_error(const std::string& path) {
  return {ErrorCode::io, fmt::format("{} is locked by another process", path),
          fmt::format("wait until that process ends; if there is none: rm -f {}", owner_file_path(path, 1))};
}

}  // namespace

std::string owner_file_path(const std::string& path, int number) {
  const std::size_t name = path.rfind('/') + 1;  // 0 without a folder part
  return fmt::format("{}owner-{}.{}", path.substr(0, name), number, path.substr(name));
}

// Owner files are numbered from 1, and those of killed owners are never removed. A process skips them and creates the
// next number, which O_EXCL allows to one process only. If old files were removed, a second process could create 1.
Result<std::optional<FileLock>> FileLock::try_acquire_owner_file(const std::string& path, LockScope scope) {
  for (int number = 1; number <= kMaxOwnerFiles;) {
    const std::string owner = owner_file_path(path, number);
    const FileDescriptor fd(::open(owner.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, kPrivateFileMode));
    if (fd.is_open()) {
      FileLock taken(owner, ::getpid());
      if (Status write_status = write_fully(fd.get(), this_process_identity(), owner); !write_status)
        return std::move(write_status).error();
      return std::optional(std::move(taken));
    }
    if (errno != EEXIST) return system_error("create", owner, errno);
    const LockOwnerFileState state = read_owner_file_state(owner, scope);
    if (state == LockOwnerFileState::held) return std::optional<FileLock>();
    if (state == LockOwnerFileState::ended) ++number;
  }
  return Error{ErrorCode::io,
               fmt::format("{} owners of {} ended without removing their lock files", kMaxOwnerFiles, path),
               fmt::format("remove them: rm {}", owner_file_path(path, 1))};
}

Result<std::optional<FileLock>> FileLock::try_acquire(const std::string& path, LockScope scope, FlockFunction lock) {
  FileDescriptor fd(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, kPrivateFileMode));
  if (!fd.is_open()) return system_error("open", path, errno);
  if (flock_with_eintr_retry(lock, fd.get()) == 0) return std::optional(FileLock(std::move(fd)));
  if (errno == EWOULDBLOCK) return std::optional<FileLock>();
  if (is_flock_unsupported(errno)) return try_acquire_owner_file(path, scope);
  return system_error("lock", path, errno);
}

Result<FileLock> FileLock::acquire(const std::string& path, LockScope scope, std::chrono::milliseconds timeout,
                                   FlockFunction lock) {
  const auto deadline = std::chrono::steady_clock::now() + timeout;
  while (true) {
    Result<std::optional<FileLock>> acquired_lock = try_acquire(path, scope, lock);
    if (!acquired_lock) return std::move(acquired_lock).error();
    if (*acquired_lock) return std::move(**acquired_lock);
    if (std::chrono::steady_clock::now() >= deadline) return make_lock_held_error(path);
    std::this_thread::sleep_for(kLockPollPeriod);
  }
}

bool FileLock::is_lock_of_path(const std::string& path) const {
  if (is_backed_by_owner_file()) return file_exists(owner_path_) && file_exists(path);
  struct stat locked_file_status {};
  struct stat path_status {};
  if (::fstat(fd_.get(), &locked_file_status) != 0 || ::lstat(path.c_str(), &path_status) != 0) return false;
  return locked_file_status.st_dev == path_status.st_dev && locked_file_status.st_ino == path_status.st_ino;
}

FileLock::FileLock(FileLock&& other_lock) noexcept
    : fd_(std::move(other_lock.fd_)), owner_path_(std::exchange(other_lock.owner_path_, {})), pid_(other_lock.pid_) {}

FileLock& FileLock::operator=(FileLock&& other_lock) noexcept {
  std::swap(fd_, other_lock.fd_);
  std::swap(owner_path_, other_lock.owner_path_);
  std::swap(pid_, other_lock.pid_);
  return *this;
}

FileLock::~FileLock() {
  if (!owner_path_.empty() && pid_ == ::getpid()) ::unlink(owner_path_.c_str());
}

}  // namespace joulemap
