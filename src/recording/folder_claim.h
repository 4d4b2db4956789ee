// SPDX-License-Identifier: Apache-2.0
//
// FolderClaim: gives one recorder exclusive use of the folder F.d of a recording F. The folder appears together with a
// lock file that the recorder holds. The lock file marks the folder as Joulemap's and names the process. A second
// recorder of the same file is refused.
//
// Content of F.d from an earlier recorder moves to F.old.d. The previous content of F.old.d is kept until
// commit_claim(). Unrecognized folders are never moved or removed. Used by the main thread only.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/file_lock.h"
#include "base/result.h"

namespace joulemap::recording {

// Name of the folder's marker, which is also its lock file.
inline constexpr std::string_view kFolderLockName = "joulemap.lock";

class FolderClaim {
 public:
  // Fails with ErrorCode::usage if another recorder holds `folder`, or if it or `old_folder` is not a recording folder.
  static Result<FolderClaim> claim_folder(const std::string& folder, const std::string& old_folder,
                                          FileLock::FlockFunction lock = &::flock);

  // The new recording has begun: removes the previous content of `old_folder`.
  void commit_claim();
  // Removes the claimed folder and moves the earlier folders back.
  void undo_claim();

 private:
  FolderClaim(std::string folder, std::string old_folder)
      : folder_(std::move(folder)), old_folder_(std::move(old_folder)) {}
  Status move_old_folders_aside();
  void move_old_folders_back();

  std::string folder_;
  std::string old_folder_;
  std::string displaced_old_folder_;  // where the previous `old_folder` was moved; empty if there was none
  bool has_moved_to_old_ = false;     // the content of `folder` is now in `old_folder`
  std::optional<FileLock> lock_;
};

// Fails with ErrorCode::usage unless the folder is a recording's: it contains the lock file or a part, and nothing that
// Joulemap does not create.
Status check_recording_folder(const std::string& folder);

}  // namespace joulemap::recording
