// SPDX-License-Identifier: Apache-2.0
#include "recording/sampler_lock.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>

#include <cerrno>

#include "base/small_file.h"
#include "recording/recording_parts.h"

namespace joulemap::recording {

Result<std::optional<SamplerLock>> SamplerLock::try_take(const std::string& folder, std::string_view boot_id) {
  const std::string path = fmt::format("{}/{}{}", folder, as_file_name(boot_id), kSamplerLockSuffix);
  FileDescriptor fd(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0666));
  if (!fd.is_open()) return system_error("open", path, errno);
  if (::flock(fd.get(), LOCK_EX | LOCK_NB) == 0) return std::optional(SamplerLock(std::move(fd)));
  if (errno == EWOULDBLOCK) return std::optional<SamplerLock>();
  return system_error("lock", path, errno);
}

}  // namespace joulemap::recording
