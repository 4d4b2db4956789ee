// SPDX-License-Identifier: Apache-2.0
//
// PartFolder: the folder F.d of a recording F while it is being made. The recorder owns it: it creates the folder,
// passes its path to the command's processes through the environment, and joins the parts at the end. Used by the main
// thread only.
//
// Once the new recording has begun, an older recording F becomes F.old, as with perf, and older parts become F.old.d.
// The recording of a command that failed never replaces F.old: a mistyped command must not cost a good recording.
// Files that are not recognized as recordings are never replaced or removed. Only one recorder at a time writes to F
// (folder_claim.h). If F is a symbolic link, all of this happens beside its target.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "model/diagnostics.h"
#include "model/recorded.h"
#include "recording/folder_claim.h"
#include "recording/recording_parts.h"
#include "recording/recording_writer.h"
#include "recording/sampler_lock.h"

namespace joulemap::recording {

// Environment variables of a recorded process.
inline constexpr std::string_view kRecordingFolderVariable = "JOULEMAP_RECORDING";
inline constexpr std::string_view kRecordingIdVariable = "JOULEMAP_RECORDING_ID";
inline constexpr std::string_view kProbingFolderName = "probing";  // exists while a process replays its modules
// Name of the environment fact with the rank of a process in a distributed run; of a worker, the rank that it works
// for.
inline constexpr std::string_view kRankFactName = "rank";

// This process as the source of a part: host, boot, process, start time.
RecordingSource describe_this_process(std::string recording_id, std::string source_role);

// `run`: a name that the recorders of one run on several machines share, so that their recordings are parts of one. The
// same name gives the same ID. Empty: a unique ID.
std::string choose_recording_id(std::string_view run);

// Whether a new recording to `file` replaces `file` without renaming it to F.old: it is the recording of a command that
// failed, and F.old exists.
bool keeps_older_backup(const std::string& file);

class PartFolder {
 public:
  // `recording_id`: from choose_recording_id; empty: a new one. Fails with ErrorCode::usage, before changing anything,
  // if another recorder writes to the same file or data would be lost.
  static Result<PartFolder> create(const std::string& file, std::vector<std::string> command,
                                   std::string recording_id = {});

  const std::string& file() const { return file_; }
  const std::string& path() const { return folder_path_; }
  // "NAME=value" for the environment of the command's processes.
  std::vector<std::string> environment_variables() const;

  // Opens the recorder's own part and tries to take the lock of the only process that samples this machine's sensors.
  Result<RecordingWriter> open_part(const std::string& source_role);
  // Adds a diagnostic if the folder's file system has no flock.
  void add_lock_diagnostics(Diagnostics& diagnostics) const;
  // Opens another part, which the recorder writes on behalf of a process that has ended.
  Result<RecordingWriter> open_additional_part(const std::string& source_role) const;
  // Opens a part that describes another process, possibly of another machine. Uses `source` except for its recording ID
  // and version. Times are stored in exact nanoseconds.
  Result<RecordingWriter> open_part_for_source(RecordingSource source) const;
  const std::string& recording_id() const { return recording_id_; }

  // Whether a process of the command is replaying its modules to measure their power (probing).
  bool is_probing_active() const;

  // Call once the recording has begun: renames the older one to F.old. Without this call, join() renames it.
  Status rename_older_recording();
  // Joins the parts into F. Fails if a file F has appeared since rename_older_recording().
  Result<JoinSummary> join();
  // Undoes everything if the command could not be started.
  void remove();

 private:
  explicit PartFolder(FolderClaim claim) : claim_(std::move(claim)) {}

  FolderClaim claim_;
  std::string file_;           // as given by the user
  std::string resolved_file_;  // after resolving symbolic links
  std::string folder_path_;
  bool has_renamed_older_recording_ = false;
  std::string recording_id_;
  std::vector<std::string> command_;
  std::optional<SamplerLock> sampler_lock_;
};

}  // namespace joulemap::recording
