// SPDX-License-Identifier: Apache-2.0
#include "recording/part_folder.h"

#include <fmt/format.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <system_error>

#include "base/check.h"
#include "base/clock.h"
#include "base/hash.h"
#include "base/output_file.h"
#include "base/small_file.h"
#include "base/text.h"

namespace joulemap::recording {
namespace {

namespace fs = std::filesystem;

std::string new_recording_id() {
  std::array<unsigned char, 16> bytes{};
  const ssize_t got = ::getrandom(bytes.data(), bytes.size(), 0);
  JOULEMAP_CHECK(got == static_cast<ssize_t>(bytes.size()), "the kernel has always 16 random bytes");
  std::string id;
  for (const unsigned char byte : bytes) id += fmt::format("{:02x}", byte);
  return id;
}

// The recording ID for a run of this name: the same on every machine.
std::string id_of_run(std::string_view run) {
  std::string id;
  for (const std::uint64_t seed : {kFnvBasis, std::uint64_t{0x9ae16a3b2f90404f}}) {
    id += fmt::format("{:016x}", fnv1a(run, seed));
  }
  return id;
}

bool exists(const std::string& path) {
  struct stat status {};
  return ::lstat(path.c_str(), &status) == 0;
}

// The recording replaces an existing file, but never a folder or, for root, a device.
Status check_file_name(const std::string& file) {
  std::error_code error;
  const std::string remedy = "pass a file name: -o run.joule";
  if (fs::is_directory(file, error)) return Error{ErrorCode::usage, fmt::format("{} is a folder", file), remedy};
  const bool is_file = !fs::exists(file, error) || fs::is_regular_file(file, error);
  if (!file.empty() && !file.ends_with('/') && is_file) return Done{};
  return Error{ErrorCode::usage, fmt::format("{} is not a file", joulemap::quoted(file)), remedy};
}

// Whether `file` may be renamed to `older`: only if `older` does not exist, is empty or is a recording.
Status check_older(const std::string& file, const std::string& older) {
  std::error_code error;
  if (!exists(file) || !exists(older)) return Done{};
  const bool is_plain = fs::symlink_status(older, error).type() == fs::file_type::regular;
  if (is_plain && (has_recording_magic(older) || fs::file_size(older, error) == 0)) return Done{};
  return Error{ErrorCode::usage, fmt::format("{} is not a recording, and {} would replace it", older, file),
               fmt::format("move it: mv {} ELSEWHERE, or choose another output with -o", older)};
}

}  // namespace

RecordingSource describe_this_process(std::string recording_id, std::string role) {
  RecordingSource source;
  source.recording_id = std::move(recording_id);
  std::array<char, 256> name{};
  if (::gethostname(name.data(), name.size() - 1) == 0) source.host = name.data();
  if (const Result<std::string> boot = read_small_file("/proc/sys/kernel/random/boot_id")) {
    source.boot_id = std::string(trim(*boot));
  }
  source.pid = ::getpid();
  source.started_ns = monotonic_ns();
  source.role = std::move(role);
  source.version = JOULEMAP_VERSION;
  return source;
}

std::string choose_recording_id(std::string_view run) { return run.empty() ? new_recording_id() : id_of_run(run); }

Result<PartFolder> PartFolder::create(const std::string& file, std::vector<std::string> command,
                                      std::string recording_id) {
  if (Status named = check_file_name(file); !named) return std::move(named).error();
  if (Status own = refuse_planted_file(file); !own) return std::move(own).error();
  std::error_code error;
  const std::string target = fs::absolute(resolve_links(file), error).string();
  if (error) return Error{ErrorCode::io, fmt::format("{}: {}", file, error.message()), "choose another output with -o"};
  if (Status replaceable = check_older(target, target + ".old"); !replaceable) return std::move(replaceable).error();
  Result<FolderClaim> claim = FolderClaim::take(recording_folder(target), recording_folder(target + ".old"));
  if (!claim) return std::move(claim).error();
  PartFolder folder(std::move(*claim));
  folder.file_ = file;
  folder.target_ = target;
  folder.path_ = recording_folder(target);
  folder.recording_id_ = recording_id.empty() ? new_recording_id() : std::move(recording_id);
  folder.command_ = std::move(command);
  return folder;
}

std::vector<std::string> PartFolder::environment() const {
  return {fmt::format("{}={}", kRecordingFolderVariable, path_),
          fmt::format("{}={}", kRecordingIdVariable, recording_id_)};
}

Result<RecordingWriter> PartFolder::open_part(const std::string& role) {
  RecordingSource source = describe_this_process(recording_id_, role);
  source.command = command_;
  Result<std::optional<SamplerLock>> lock = SamplerLock::try_acquire(path_, source.boot_id);
  if (!lock) return std::move(lock).error();
  lock_ = std::move(*lock);
  const std::string part = recording_part_path(path_, source);
  return RecordingWriter::create(part, std::move(source));
}

void PartFolder::add_lock_diagnostics(Diagnostics& diagnostics) const {
  if (!lock_ || !lock_->is_owner_file()) return;
  diagnostics.add({"flock_missing", 1,
                   fmt::format("the file system of {} does not support flock: an owner file marks the sampler, and "
                               "joulemap cannot detect parts that are still being written",
                               path_),
                   "record to a local disk with -o, then copy the file"});
}

Result<RecordingWriter> PartFolder::open_additional_part(const std::string& role) const {
  RecordingSource source = describe_this_process(recording_id_, role);
  const std::string part = recording_part_path(path_, source);
  return RecordingWriter::create(part, std::move(source));
}

Result<RecordingWriter> PartFolder::open_part_for_source(RecordingSource source) const {
  source.recording_id = recording_id_;
  source.version = JOULEMAP_VERSION;
  const std::string part = recording_part_path(path_, source);
  return RecordingWriter::create(part, std::move(source), 0);
}

bool PartFolder::is_probing_active() const {
  std::error_code error;  // an inaccessible folder counts as missing
  return fs::exists(fs::path(path_) / kProbingFolderName, error);
}

Status PartFolder::rename_older_recording() {
  has_begun_ = true;
  claim_.commit();
  if (!exists(target_)) return Done{};
  const std::string older = target_ + ".old";
  if (Status replaceable = check_older(target_, older); !replaceable) return replaceable;
  if (::rename(target_.c_str(), older.c_str()) == 0) return Done{};
  return system_error("rename to", older, errno);
}

Result<JoinSummary> PartFolder::join() {
  std::error_code error;  // ignored: removes the folder of a process killed while probing
  fs::remove_all(fs::path(path_) / kProbingFolderName, error);
  return join_parts(path_, target_, [this]() -> Status {
    if (!has_begun_) return rename_older_recording();
    if (!exists(target_)) return Done{};
    return Error{ErrorCode::io, fmt::format("{} already exists and is not overwritten", file_),
                 fmt::format("move it; the parts of the recording are in {}", path_)};
  });
}

void PartFolder::remove() { claim_.rollback(); }

}  // namespace joulemap::recording
