// SPDX-License-Identifier: Apache-2.0
//
// SamplerLock: elects the one process of a machine that samples its sensors for a recording; the others write events
// only. An flock on a file of the recording's folder, named after the machine's boot: machines that share the folder
// elect one each. Held as long as the object lives; the kernel lets go when the process dies, and another may then take
// over.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/file_descriptor.h"
#include "base/result.h"

namespace joulemap::recording {

class SamplerLock {
 public:
  // Nothing when another process holds it. Does not wait.
  static Result<std::optional<SamplerLock>> try_take(const std::string& folder, std::string_view boot_id);

 private:
  explicit SamplerLock(FileDescriptor fd) : fd_(std::move(fd)) {}
  FileDescriptor fd_;
};

// How the lock files of a folder end; a join removes them with the parts.
inline constexpr std::string_view kSamplerLockSuffix = ".sampler-lock";

}  // namespace joulemap::recording
