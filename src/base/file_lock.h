// SPDX-License-Identifier: Apache-2.0
//
// FileLock: an exclusive lock between processes that share a folder, held for the lifetime of the object. Uses flock on
// a file, which the kernel releases when the process dies. On file systems without flock (NFS without a lock server,
// Lustre, some FUSE) it creates an owner file with O_EXCL instead. An owner file whose process has ended is skipped.
//
// A forked child does not hold the lock. Any thread.
#pragma once

#include <sys/file.h>

#include <chrono>
#include <optional>
#include <string>

#include "base/file_descriptor.h"
#include "base/result.h"

namespace joulemap {

// Which processes compete for the lock. Only matters without flock, for an owner from another boot.
enum class LockScope {
  machine,  // this machine only: an owner from another boot has ended
  shared,   // several machines: an owner from another boot may be running elsewhere, so the lock is held
};

class FileLock {
 public:
  using FlockFunction = int (*)(int fd, int operation);

  // Does not wait; nullopt if another process holds the lock. `lock` replaces flock in tests.
  static Result<std::optional<FileLock>> try_acquire(const std::string& path, LockScope scope,
                                                     FlockFunction lock = &::flock);
  // Waits for at most `timeout`, then fails.
  static Result<FileLock> acquire(const std::string& path, LockScope scope, std::chrono::milliseconds timeout,
                                  FlockFunction lock = &::flock);

  FileLock(FileLock&& other_lock) noexcept;
  FileLock& operator=(FileLock&& other_lock) noexcept;
  FileLock(const FileLock&) = delete;
  FileLock& operator=(const FileLock&) = delete;
  ~FileLock();

  // Whether `path` still names the locked file: it may have been moved or replaced.
  bool is_lock_of_path(const std::string& path) const;

  // True without flock: if the owner is killed on another machine, the lock stays held until its file is removed.
  bool is_backed_by_owner_file() const { return !owner_path_.empty(); }

 private:
  explicit FileLock(FileDescriptor fd) : fd_(std::move(fd)) {}
  FileLock(std::string owner_path, int pid) : owner_path_(std::move(owner_path)), pid_(pid) {}
  static Result<std::optional<FileLock>> try_acquire_owner_file(const std::string& path, LockScope scope);

  FileDescriptor fd_;
  std::string owner_path_;  // path of the owner file; empty with flock
  int pid_ = 0;
};

// Path of the owner file of `path` where flock is missing. It lies in the same folder, and its name ends with that of
// `path`. `number` grows by one for each owner that ended without removing its file.
std::string owner_file_path(const std::string& path, int number);

}  // namespace joulemap
