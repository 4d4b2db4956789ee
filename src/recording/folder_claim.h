// SPDX-License-Identifier: Apache-2.0
//
// FolderClaim: the folder F.d of a recording F belongs to one recorder. The folder appears with a lock file in it that the
// recorder holds: it marks the folder as Joulemap's and names the process. A second recorder of the same file is refused.
//
// What an earlier recorder left in F.d goes to F.old.d, and what was there before is removed: after commit(), not earlier.
// Folders that are not recognized are never moved or removed. Main thread.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/file_lock.h"
#include "base/result.h"

namespace joulemap::recording {

// The marker of the folder, which is also its lock.
inline constexpr std::string_view kFolderLockName = "joulemap.lock";

class FolderClaim {
 public:
  // An error of usage where another recorder holds `folder`, or where it or `older` is not a folder of a recording.
  static Result<FolderClaim> take(const std::string& folder, const std::string& older,
                                  FileLock::LockCall lock = &::flock);

  // The new recording has begun: what lay in `older` before is removed.
  void commit();
  // The folder is removed; what was moved is where it was.
  void rollback();

 private:
  FolderClaim(std::string folder, std::string older) : folder_(std::move(folder)), older_(std::move(older)) {}
  Status move_aside();
  void move_back();

  std::string folder_;
  std::string older_;
  std::string displaced_;  // what lay in `older`; empty where nothing did
  bool moved_ = false;     // what lay in `folder` lies in `older`
  std::optional<FileLock> lock_;
};

// Whether the folder is a recording's: it has the marker, or parts of a recording and nothing else.
Status check_recording_folder(const std::string& folder);

}  // namespace joulemap::recording
