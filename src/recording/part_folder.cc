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
#include "recording/recording_reader.h"

namespace joulemap::recording {
namespace {

namespace fs = std::filesystem;

std::string new_recording_id() {
  std::array<unsigned char, 16> bytes{};
  const ssize_t random_byte_count = ::getrandom(bytes.data(), bytes.size(), 0);
  JOULEMAP_CHECK(random_byte_count == static_cast<ssize_t>(bytes.size()), "the kernel has always 16 random bytes");
  std::string id;
  for (const unsigned char byte : bytes) id += fmt::format("{:02x}", byte);
  return id;
}

// The recording ID for a run of this name: the same on every machine.
std::string recording_id_of_run(std::string_view run) {
  std::string id;
  for (const std::uint64_t seed : {kFnvOffsetBasis, std::uint64_t{0x9ae16a3b2f90404f}}) {
    id += fmt::format("{:016x}", fnv1a(run, seed));
  }
  return id;
}

bool has_output_file(const std::string& path) {
  struct stat status {};
  return ::lstat(path.c_str(), &status) == 0;
}

// Recordings of commands that ran for long are kept, whatever their exit code: they are larger than this.
constexpr std::uintmax_t kMaxFailedRecordingBytes = std::uintmax_t{256} << 10;

class ExitCodeReader : public RecordingVisitor {
 public:
  bool has_failed() const { return has_failed_; }
  void on_end(std::uint32_t /*source*/, const RecordingEnd& end) override {
    has_failed_ = has_failed_ || (!end.signal && end.exit_code.value_or(0) != 0);
  }

 private:
  bool has_failed_ = false;
};

// The recording replaces an existing file, but never a folder or, for root, a device.
Status check_recording_path(const std::string& file) {
  std::error_code error;
  const std::string remedy = "pass a file name: -o run.joule";
  if (fs::is_directory(file, error)) return Error{ErrorCode::usage, fmt::format("{} is a folder", file), remedy};
  const bool is_file = !fs::exists(file, error) || fs::is_regular_file(file, error);
  if (!file.empty() && !file.ends_with('/') && is_file) return Done{};
  return Error{ErrorCode::usage, fmt::format("{} is not a file", joulemap::quoted(file)), remedy};
}

// Whether `file` may be renamed to `backup_path`: only if `backup_path` does not exist, is empty or is a recording.
Status check_backup_replaceable(const std::string& file, const std::string& backup_path) {
  std::error_code error;
  if (!has_output_file(file) || !has_output_file(backup_path)) return Done{};
  const bool is_plain = fs::symlink_status(backup_path, error).type() == fs::file_type::regular;
  if (is_plain && (starts_with_recording_magic(backup_path) || fs::file_size(backup_path, error) == 0)) return Done{};
  return Error{ErrorCode::usage, fmt::format("{} is not a recording, and {} would replace it", backup_path, file),
               fmt::format("move it: mv {} ELSEWHERE, or choose another output with -o", backup_path)};
}

}  // namespace

RecordingSource describe_this_process(std::string recording_id, std::string source_role) {
  RecordingSource source;
  source.recording_id = std::move(recording_id);
  std::array<char, 256> name{};
  if (::gethostname(name.data(), name.size() - 1) == 0) source.host = name.data();
  if (const Result<std::string> boot = read_small_file("/proc/sys/kernel/random/boot_id")) {
    source.boot_id = std::string(trim(*boot));
  }
  source.pid = ::getpid();
  source.started_ns = monotonic_ns();
  source.role = std::move(source_role);
  source.version = JOULEMAP_VERSION;
  return source;
}

std::string choose_recording_id(std::string_view run) {
  return run.empty() ? new_recording_id() : recording_id_of_run(run);
}

bool keeps_older_backup(const std::string& file) {
  std::error_code error;
  if (!has_output_file(file + ".old") || fs::symlink_status(file, error).type() != fs::file_type::regular) return false;
  if (fs::file_size(file, error) > kMaxFailedRecordingBytes || error) return false;
  ExitCodeReader reader;
  return starts_with_recording_magic(file) && read_recording(file, reader) && reader.has_failed();
}

Result<PartFolder> PartFolder::create(const std::string& file, std::vector<std::string> command,
                                      std::string recording_id) {
  if (Status path_status = check_recording_path(file); !path_status) return std::move(path_status).error();
  if (Status owner_status = check_trusted_file_owner(file); !owner_status) return std::move(owner_status).error();
  std::error_code error;
  const std::string target = fs::absolute(resolve_links(file), error).string();
  if (error) return Error{ErrorCode::io, fmt::format("{}: {}", file, error.message()), "choose another output with -o"};
  if (Status backup_status = check_backup_replaceable(target, target + ".old"); !backup_status)
    return std::move(backup_status).error();
  Result<FolderClaim> claim = FolderClaim::claim_folder(recording_folder(target), recording_folder(target + ".old"));
  if (!claim) return std::move(claim).error();
  PartFolder folder(std::move(*claim));
  folder.file_ = file;
  folder.resolved_file_ = target;
  folder.folder_path_ = recording_folder(target);
  folder.recording_id_ = recording_id.empty() ? new_recording_id() : std::move(recording_id);
  folder.command_ = std::move(command);
  return folder;
}

std::vector<std::string> PartFolder::environment_variables() const {
  return {fmt::format("{}={}", kRecordingFolderVariable, folder_path_),
          fmt::format("{}={}", kRecordingIdVariable, recording_id_)};
}

Result<RecordingWriter> PartFolder::open_part(const std::string& source_role) {
  RecordingSource source = describe_this_process(recording_id_, source_role);
  source.command = command_;
  Result<std::optional<SamplerLock>> lock = SamplerLock::try_acquire(folder_path_, source.boot_id);
  if (!lock) return std::move(lock).error();
  sampler_lock_ = std::move(*lock);
  const std::string part = recording_part_path(folder_path_, source);
  return RecordingWriter::create(part, std::move(source));
}

void PartFolder::add_lock_diagnostics(Diagnostics& diagnostics) const {
  if (!sampler_lock_ || !sampler_lock_->is_backed_by_owner_file()) return;
  diagnostics.add({"flock_missing", 1,
                   fmt::format("the file system of {} does not support flock: an owner file marks the sampler, and "
                               "joulemap cannot detect parts that are still being written",
                               folder_path_),
                   "record to a local disk with -o, then copy the file"});
}

Result<RecordingWriter> PartFolder::open_additional_part(const std::string& source_role) const {
  RecordingSource source = describe_this_process(recording_id_, source_role);
  const std::string part = recording_part_path(folder_path_, source);
  return RecordingWriter::create(part, std::move(source));
}

Result<RecordingWriter> PartFolder::open_part_for_source(RecordingSource source) const {
  source.recording_id = recording_id_;
  source.version = JOULEMAP_VERSION;
  const std::string part = recording_part_path(folder_path_, source);
  return RecordingWriter::create(part, std::move(source), 0);
}

bool PartFolder::is_probing_active() const {
  std::error_code error;  // an inaccessible folder counts as missing
  return fs::exists(fs::path(folder_path_) / kProbingFolderName, error);
}

Status PartFolder::rename_older_recording() {
  has_renamed_older_recording_ = true;
  claim_.commit_claim();
  if (!has_output_file(resolved_file_)) return Done{};
  const std::string backup_path = resolved_file_ + ".old";
  if (Status backup_status = check_backup_replaceable(resolved_file_, backup_path); !backup_status)
    return backup_status;
  if (keeps_older_backup(resolved_file_)) {
    if (::unlink(resolved_file_.c_str()) == 0) return Done{};
    return system_error("remove", resolved_file_, errno);
  }
  if (::rename(resolved_file_.c_str(), backup_path.c_str()) == 0) return Done{};
  return system_error("rename to", backup_path, errno);
}

Result<JoinSummary> PartFolder::join() {
  std::error_code error;  // ignored: removes the folder of a process killed while probing
  fs::remove_all(fs::path(folder_path_) / kProbingFolderName, error);
  return join_parts(folder_path_, resolved_file_, [this]() -> Status {
    if (!has_renamed_older_recording_) return rename_older_recording();
    if (!has_output_file(resolved_file_)) return Done{};
    return Error{ErrorCode::io, fmt::format("{} already exists and is not overwritten", file_),
                 fmt::format("move it; the parts of the recording are in {}", folder_path_)};
  });
}

void PartFolder::remove() { claim_.undo_claim(); }

}  // namespace joulemap::recording
