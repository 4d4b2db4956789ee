// SPDX-License-Identifier: Apache-2.0
//
// PartFolder: the folder F.d of a recording F while it is being made. Who owns it is the recorder: it makes the folder,
// tells the command's processes of it through their environment, and joins what lies in it at the end. Main thread.
//
// An older recording F becomes F.old, as perf does it, once the new one has begun, and older parts F.old.d. What is not
// recognized as a recording is never replaced or removed, and one recorder at a time writes to F (folder_claim.h).
// Where F is a symbolic link, all of this happens beside the file it points to.
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

// What a process finds in its environment when it is being recorded.
inline constexpr std::string_view kFolderVariable = "JOULEMAP_RECORDING";
inline constexpr std::string_view kIdVariable = "JOULEMAP_RECORDING_ID";
inline constexpr std::string_view kProbingFolder = "probing";
// The fact that says which rank of a distributed run a process is, or works for.
inline constexpr std::string_view kRankFact = "rank";

// This process as the source of a part: host, boot, process, moment.
RecordingSource describe_this_process(std::string recording_id, std::string role);

// `run`: a name that recorders of one run on several machines share, so that their recordings are parts of one; the same
// id for the same name. Empty: an id that no other recording has.
std::string choose_recording_id(std::string_view run);

class PartFolder {
 public:
  // `recording_id`: from choose_recording_id; empty: a new one.
  // An error of usage, before anything has changed, where another recorder writes to the same file or where something
  // would be lost.
  static Result<PartFolder> create(const std::string& file, std::vector<std::string> command,
                                   std::string recording_id = {});

  const std::string& file() const { return file_; }
  const std::string& path() const { return path_; }
  // "NAME=value" for the command's processes.
  std::vector<std::string> environment() const;

  // The recorder's own part, and the lock that makes it the one sampler of this machine.
  Result<RecordingWriter> open_part(const std::string& role);
  // Says so where the folder's file system has no flock.
  void add_lock_notes(Diagnostics& diagnostics) const;
  // One more, for what the recorder writes on behalf of a process that has ended.
  Result<RecordingWriter> open_further_part(const std::string& role) const;
  // A part that tells of another process, maybe of another machine: `source` but for the recording's id. Times are exact.
  Result<RecordingWriter> open_part_of(RecordingSource source) const;
  const std::string& recording_id() const { return recording_id_; }

  // Whether one of the command's processes replays its modules at present: it holds a file in a folder of that name.
  bool is_probed() const;

  // The recording has begun: the older one becomes F.old. Without this call, once the new one is complete.
  Status keep_older();
  // Fails where a file of that name has come meanwhile.
  Result<JoinSummary> join();
  // When the command could not be started: as if nothing had happened.
  void remove();

 private:
  explicit PartFolder(FolderClaim claim) : claim_(std::move(claim)) {}

  FolderClaim claim_;
  std::string file_;    // as the user named it
  std::string target_;  // where its links lead
  std::string path_;
  bool has_begun_ = false;
  std::string recording_id_;
  std::vector<std::string> command_;
  std::optional<SamplerLock> lock_;
};

}  // namespace joulemap::recording
