// SPDX-License-Identifier: Apache-2.0
//
// FileLock: an exclusive lock between processes that share a folder, held as long as the object lives. An flock on a file,
// which the kernel releases when the process dies. File systems without flock (NFS without a lock server, Lustre, some of
// FUSE) get a file that names its owner instead, made with O_EXCL: one whose owner has ended is passed over.
//
// A forked child does not hold it. Any thread.
#pragma once

#include <sys/file.h>

#include <chrono>
#include <optional>
#include <string>

#include "base/file_descriptor.h"
#include "base/result.h"

namespace joulemap {

// Who contends for a lock. Only matters without flock, for an owner of another boot.
enum class LockScope {
  machine,  // the name of the lock names the machine: an owner of another boot was before this one, and has ended
  shared,   // by several machines: the owner may be at work on another one, so the lock is held
};

class FileLock {
 public:
  using LockCall = int (*)(int fd, int operation);

  // Nothing when another process holds it. Does not wait. `lock` replaces flock in tests.
  static Result<std::optional<FileLock>> try_take(const std::string& path, LockScope scope, LockCall lock = &::flock);
  // Waits, at most `patience`.
  static Result<FileLock> take(const std::string& path, LockScope scope, std::chrono::milliseconds patience,
                               LockCall lock = &::flock);

  FileLock(FileLock&& other) noexcept;
  FileLock& operator=(FileLock&& other) noexcept;
  FileLock(const FileLock&) = delete;
  FileLock& operator=(const FileLock&) = delete;
  ~FileLock();

  // Whether the file of that name is still the one that is locked: it may have been moved or replaced meanwhile.
  bool is_at(const std::string& path) const;

  // Without flock: an owner that is killed on another machine keeps it until its file is removed.
  bool is_owner_file() const { return !owner_path_.empty(); }

 private:
  explicit FileLock(FileDescriptor fd) : fd_(std::move(fd)) {}
  FileLock(std::string owner_path, int pid) : owner_path_(std::move(owner_path)), pid_(pid) {}
  static Result<std::optional<FileLock>> try_owner_file(const std::string& path, LockScope scope);

  FileDescriptor fd_;
  std::string owner_path_;  // empty with flock
  int pid_ = 0;
};

// The file that names the owner of `path` where flock is missing, in its folder: ends as `path` does. The number grows by
// one for each owner that ended without removing its file.
std::string owner_file_path(const std::string& path, int number);

}  // namespace joulemap
