// SPDX-License-Identifier: Apache-2.0
//
// SamplerLock: elects the one process of a machine that samples its sensors for a recording; the others write events
// only. A FileLock in the recording's folder, named after the machine's boot: machines that share the folder elect one
// each. Held as long as the object lives; when the process dies another may take over.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/file_lock.h"
#include "base/result.h"

namespace joulemap::recording {

class SamplerLock {
 public:
  // Nothing when another process holds it. Does not wait.
  static Result<std::optional<SamplerLock>> try_take(const std::string& folder, std::string_view boot_id,
                                                     FileLock::LockCall lock = &::flock);
  // The folder's file system has no flock.
  bool is_owner_file() const { return lock_.is_owner_file(); }

 private:
  explicit SamplerLock(FileLock lock) : lock_(std::move(lock)) {}
  FileLock lock_;
};

// How the lock files of a folder end; a join removes them with the parts.
inline constexpr std::string_view kSamplerLockSuffix = ".sampler-lock";

}  // namespace joulemap::recording
