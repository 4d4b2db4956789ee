// SPDX-License-Identifier: Apache-2.0
//
// SamplerLock: elects the one process per machine that samples its sensors for a recording; the others write only
// events. It is a FileLock in the recording's folder, named after the boot ID: machines that share the folder elect one
// sampler each. Held for the lifetime of the object; after the process dies, another process can take it.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/file_lock.h"
#include "base/result.h"

namespace joulemap::recording {

class SamplerLock {
 public:
  // Does not wait; nullopt if another process holds the lock.
  static Result<std::optional<SamplerLock>> try_acquire(const std::string& folder, std::string_view boot_id,
                                                        FileLock::FlockFunction lock = &::flock);
  // True if the folder's file system has no flock, so that a file that names its owner serves as the lock.
  bool is_backed_by_owner_file() const { return lock_.is_backed_by_owner_file(); }

 private:
  explicit SamplerLock(FileLock lock) : lock_(std::move(lock)) {}
  FileLock lock_;
};

// Suffix of the lock files in a folder; a join removes them with the parts.
inline constexpr std::string_view kSamplerLockSuffix = ".sampler-lock";

}  // namespace joulemap::recording
