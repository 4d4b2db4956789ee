// SPDX-License-Identifier: Apache-2.0
#include "recording/folder_claim.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <vector>

#include "base/file_descriptor.h"
#include "base/private_files.h"
#include "base/process_identity.h"
#include "base/small_file.h"
#include "base/text.h"
#include "base/write_fully.h"
#include "recording/chunk_file.h"
#include "recording/part_folder.h"
#include "recording/part_list.h"
#include "recording/recording_parts.h"
#include "recording/sampler_lock.h"

namespace joulemap::recording {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kLockFileHeader = "joulemap recording\n";
constexpr int kMaxFolderNameTries = 100;  // for recorders that start simultaneously
constexpr std::string_view kOtherOutputRemedy = "choose another output with -o";

bool path_exists(const std::string& path) {
  struct stat status {};
  return ::lstat(path.c_str(), &status) == 0;
}

mode_t file_type_of(const std::string& path) {
  struct stat status {};
  return ::lstat(path.c_str(), &status) == 0 ? status.st_mode & S_IFMT : 0;
}

std::string folder_lock_path(const std::string& folder) { return fmt::format("{}/{}", folder, kFolderLockName); }

Error make_folder_claim_error(std::string message, std::string remedy) {
  return {ErrorCode::usage, std::move(message), fmt::format("{}, or {}", remedy, kOtherOutputRemedy)};
}

// Whether a recorder or the recorded processes create entries of that name.
bool is_recording_folder_entry(const std::string& path, std::string_view name) {
  const mode_t kind = file_type_of(path);
  if (kind == S_IFDIR) return name == kTracesFolderName || name == kProbingFolderName;
  if (kind != S_IFREG) return false;
  const bool is_lock = name.ends_with(kFolderLockName) || name.ends_with(kSamplerLockSuffix);
  return is_lock || name == kUnfinishedJoinFileName || name.ends_with(kPartSuffix);
}

std::optional<std::string> find_part_being_written(const std::string& folder) {
  const Result<ListedParts> listed = list_parts(folder);
  if (!listed) return std::nullopt;
  for (const std::string& part : listed->parts) {
    if (is_being_written(part)) return part;
  }
  return std::nullopt;
}

// Reads the second line of the lock file: "boot pid start namespace".
std::string describe_lock_holder(const std::string& folder) {
  const Result<std::string> text = read_small_file(folder_lock_path(folder));
  if (!text || !text->starts_with(kLockFileHeader)) return "another process";
  const std::string_view identity = std::string_view(*text).substr(kLockFileHeader.size());
  const std::vector<std::string_view> words = split_whitespace(identity);
  if (words.size() < 2) return "another process";
  const bool is_on_other_host = owner_process_state(identity) == OwnerProcessState::not_local;
  return fmt::format("process {}{}", words[1], is_on_other_host ? " on another machine or in another container" : "");
}

Error make_folder_in_use_error(const std::string& folder) {
  const std::string file = folder.substr(0, folder.rfind(".d"));
  return make_folder_claim_error(fmt::format("{} is being recorded by {}", file, describe_lock_holder(folder)),
                                 "wait until it ends");
}

// Takes the lock of an abandoned folder. Returns nullopt if the folder changed meanwhile and the caller must retry.
Result<std::optional<FileLock>> lock_abandoned_folder(const std::string& folder, FileLock::FlockFunction lock) {
  if (Status folder_status = check_recording_folder(folder); !folder_status) {
    if (!path_exists(folder)) return std::optional<FileLock>();
    return std::move(folder_status).error();
  }
  // Recorders of earlier versions lock only their part, not the folder.
  if (!path_exists(folder_lock_path(folder))) {
    if (const std::optional<std::string> part = find_part_being_written(folder)) {
      return make_folder_claim_error(fmt::format("{} is still being written", *part), "wait until its process ends");
    }
  }
  Result<std::optional<FileLock>> folder_lock =
      FileLock::try_acquire(folder_lock_path(folder), LockScope::shared, lock);
  if (!folder_lock && !path_exists(folder)) return std::optional<FileLock>();
  if (!folder_lock) return folder_lock;
  if (!*folder_lock) return make_folder_in_use_error(folder);
  if (!(*folder_lock)->is_lock_of_path(folder_lock_path(folder))) return std::optional<FileLock>();
  return folder_lock;
}

Status rename_path(const std::string& old_path, const std::string& new_path) {
  if (::rename(old_path.c_str(), new_path.c_str()) == 0) return Done{};
  Error error = system_error("rename", fmt::format("{} to {}", old_path, new_path), errno);
  error.remedy = kOtherOutputRemedy;
  return error;
}

// Removes the folder, unless it contains files that are not Joulemap's.
void remove_recording_folder(const std::string& folder) {
  std::error_code error;  // undeletable files are left
  if (check_recording_folder(folder)) fs::remove_all(folder, error);
}

// Writes in place, because the lock is held on this file.
Status overwrite_file_in_place(const std::string& path, std::string_view content) {
  const FileDescriptor fd(::open(path.c_str(), O_WRONLY | O_TRUNC | O_NOFOLLOW | O_CLOEXEC));
  return fd.is_open() ? write_fully(fd.get(), content, path) : Status(system_error("open", path, errno));
}

struct LockedFolder {
  std::string path;
  FileLock lock;
};

// Creates a folder beside `target_path` with its lock held. A later rename makes it visible under that name atomically.
Result<LockedFolder> create_locked_folder(const std::string& target_path, FileLock::FlockFunction lock) {
  std::string path;
  int mkdir_result = -1;
  for (int number = 0; mkdir_result != 0 && number < kMaxFolderNameTries; ++number) {
    path = fmt::format("{}.new-{}-{}", target_path, ::getpid(), number);
    mkdir_result = ::mkdir(path.c_str(), kPrivateFolderMode);
    if (mkdir_result != 0 && errno != EEXIST) break;
  }
  if (mkdir_result != 0) {
    Error error = system_error("create", target_path, errno);
    if (error.code != ErrorCode::permission) error.code = ErrorCode::io;
    error.remedy = "choose another output with -o";
    return error;
  }
  Result<std::optional<FileLock>> folder_lock = FileLock::try_acquire(folder_lock_path(path), LockScope::shared, lock);
  if (!folder_lock) {
    std::error_code ignored_error;
    fs::remove_all(path, ignored_error);
    return std::move(folder_lock).error();
  }
  if (!*folder_lock) return make_folder_in_use_error(path);
  // On a full disk the file name alone marks the folder; the command runs nevertheless.
  static_cast<void>(
      overwrite_file_in_place(folder_lock_path(path), fmt::format("{}{}\n", kLockFileHeader, this_process_identity())));
  return LockedFolder{path, std::move(**folder_lock)};
}

}  // namespace

Status check_recording_folder(const std::string& folder) {
  const std::string remedy = fmt::format("move it: mv {} ELSEWHERE", folder);
  if (file_type_of(folder) != S_IFDIR)
    return make_folder_claim_error(fmt::format("{} is not a recording folder", folder), remedy);
  const Result<std::vector<std::string>> names = list_directory(folder);
  if (!names) return names.error();
  const bool has_lock_file = file_type_of(folder_lock_path(folder)) == S_IFREG;
  bool has_part = false;
  for (const std::string& name : *names) {
    const std::string path = fmt::format("{}/{}", folder, name);
    const bool is_part = name.ends_with(kPartSuffix) && file_type_of(path) == S_IFREG;
    const bool is_recording = is_part && starts_with_recording_magic(path);
    has_part = has_part || is_recording;
    std::error_code error;
    const bool is_foreign_part = is_part && !has_lock_file && !is_recording && fs::file_size(path, error) > 0;
    if (!is_recording_folder_entry(path, name) || is_foreign_part) {
      return make_folder_claim_error(fmt::format("{} is not a part of a recording: {} stays unchanged", path, folder),
                                     remedy);
    }
  }
  if (has_lock_file || has_part) return Done{};
  return make_folder_claim_error(fmt::format("{} is not a recording folder", folder), remedy);
}

Status FolderClaim::move_old_folders_aside() {
  if (path_exists(old_folder_)) {
    if (Status folder_status = check_recording_folder(old_folder_); !folder_status) return folder_status;
    if (const std::optional<std::string> part = find_part_being_written(old_folder_)) {
      return make_folder_claim_error(fmt::format("{} is still being written", *part), "wait until its process ends");
    }
    const std::string displaced_path = fmt::format("{}.{}", old_folder_, ::getpid());
    if (Status displace_status = rename_path(old_folder_, displaced_path); !displace_status) return displace_status;
    displaced_old_folder_ = displaced_path;
  }
  Status move_status = rename_path(folder_, old_folder_);
  has_moved_to_old_ = move_status.has_value();
  return move_status;
}

void FolderClaim::move_old_folders_back() {
  if (has_moved_to_old_) static_cast<void>(rename_path(old_folder_, folder_));
  if (!displaced_old_folder_.empty()) static_cast<void>(rename_path(displaced_old_folder_, old_folder_));
  has_moved_to_old_ = false;
  displaced_old_folder_.clear();
}

Result<FolderClaim> FolderClaim::claim_folder(const std::string& folder, const std::string& old_folder,
                                              FileLock::FlockFunction lock) {
  FolderClaim claim(folder, old_folder);
  Result<LockedFolder> new_folder = create_locked_folder(folder, lock);
  if (!new_folder) return std::move(new_folder).error();
  Status claim_status = make_folder_in_use_error(folder);
  for (int attempt = 0; attempt < kMaxFolderNameTries; ++attempt) {
    std::optional<FileLock> abandoned_folder_lock;  // held until the folder is renamed
    if (path_exists(folder)) {
      Result<std::optional<FileLock>> folder_lock = lock_abandoned_folder(folder, lock);
      if (!folder_lock) claim_status = std::move(folder_lock).error();
      if (!folder_lock) break;
      if (!*folder_lock) continue;
      abandoned_folder_lock = std::move(*folder_lock);
      claim_status = claim.move_old_folders_aside();
      if (!claim_status) break;
    }
    claim_status =
        path_exists(folder) ? Status(make_folder_in_use_error(folder)) : rename_path(new_folder->path, folder);
    if (claim_status) {
      claim.lock_ = std::move(new_folder->lock);
      return claim;
    }
  }
  claim.move_old_folders_back();
  remove_recording_folder(new_folder->path);
  return std::move(claim_status).error();
}

void FolderClaim::commit_claim() {
  if (!displaced_old_folder_.empty()) remove_recording_folder(displaced_old_folder_);
  displaced_old_folder_.clear();
  has_moved_to_old_ = false;
}

void FolderClaim::undo_claim() {
  remove_recording_folder(folder_);
  move_old_folders_back();
}

}  // namespace joulemap::recording
