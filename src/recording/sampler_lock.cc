// SPDX-License-Identifier: Apache-2.0
#include "recording/sampler_lock.h"

#include <fmt/format.h>

#include "recording/recording_parts.h"

namespace joulemap::recording {

Result<std::optional<SamplerLock>> SamplerLock::try_acquire(const std::string& folder, std::string_view boot_id,
                                                            FileLock::FlockFunction lock) {
  const std::string path = fmt::format("{}/{}{}", folder, sanitize_for_file_name(boot_id), kSamplerLockSuffix);
  Result<std::optional<FileLock>> file_lock = FileLock::try_acquire(path, LockScope::machine, lock);
  if (!file_lock) return std::move(file_lock).error();
  return *file_lock ? std::optional(SamplerLock(std::move(**file_lock))) : std::nullopt;
}

}  // namespace joulemap::recording
