// SPDX-License-Identifier: Apache-2.0
#include "sensors/counter_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <linux/magic.h>
#include <sys/stat.h>
#include <sys/vfs.h>

#include <array>
#include <cerrno>
#include <charconv>
#include <string_view>

#include "base/clock.h"
#include "base/small_file.h"
#include "base/text.h"

namespace joulemap::sensors {
namespace {

// How often and how long a malformed text is retried: a writer that truncates and then writes leaves an empty file for
// some ten microseconds.
constexpr int kMaxStableReadTries = 10;
constexpr std::int64_t kMaxStableReadTime_ns = 300 * kNanosecondsPerMicrosecond;

ReadCode errno_to_read_code(int error_number) noexcept {
  switch (error_number) {
    case ENOENT:
    case ENODEV:
    case ENXIO:
      return ReadCode::vanished;
    case EACCES:
    case EPERM:
      return ReadCode::denied;
    default:
      return ReadCode::failed;
  }
}

bool is_only_blanks(std::string_view text) noexcept {
  for (const char c : text) {
    if (c != ' ' && c != '\n' && c != '\t' && c != '\r' && c != '\0') return false;
  }
  return true;
}

}  // namespace

Result<CounterFile> CounterFile::open(const std::string& path) {
  Result<FileDescriptor> fd = open_for_reading(path);
  if (!fd) return std::move(fd).error();
  struct statfs filesystem {};
  const bool is_kernel_generated = ::fstatfs(fd->get(), &filesystem) == 0 && filesystem.f_type == SYSFS_MAGIC;
  return CounterFile(path, std::move(*fd), is_kernel_generated);
}

ReadCode CounterFile::read_value_once(std::uint64_t& raw_value) noexcept {
  std::array<char, 64> buffer;
  ssize_t read_byte_count = 0;
  do {
    read_byte_count = ::pread(fd_.get(), buffer.data(), buffer.size(), 0);
  } while (read_byte_count < 0 && errno == EINTR);
  if (read_byte_count < 0) return errno_to_read_code(errno);
  const char* const end = buffer.data() + read_byte_count;
  const char* begin = buffer.data();
  while (begin != end && *begin == ' ') ++begin;
  const auto [number_end, error] = std::from_chars(begin, end, raw_value);
  if (error != std::errc{}) return ReadCode::garbage;
  return is_only_blanks({number_end, static_cast<std::size_t>(end - number_end)}) ? ReadCode::ok : ReadCode::garbage;
}

ReadCode CounterFile::read_until_stable(std::uint64_t& raw_value) noexcept {
  const std::int64_t deadline_ns = monotonic_ns() + kMaxStableReadTime_ns;
  int read_attempt_count = 0;
  ReadCode previous_code = read_value_once(raw_value);
  if (is_pseudo_file_) return previous_code;
  while (true) {
    std::uint64_t repeated_value = 0;
    const ReadCode code = read_value_once(repeated_value);
    if (code != ReadCode::garbage && code != ReadCode::ok) return code;
    if (code == ReadCode::ok && previous_code == ReadCode::ok && repeated_value == raw_value) return ReadCode::ok;
    // Gives up only after both limits: the time may pass because the thread was preempted between two reads.
    if (++read_attempt_count >= kMaxStableReadTries && monotonic_ns() > deadline_ns)
      return code == ReadCode::ok ? ReadCode::torn : code;
    raw_value = repeated_value;
    previous_code = code;
  }
}

CounterFile::ReopenOutcome CounterFile::reopen_if_replaced(ReadCode& error) noexcept {
  struct stat status {};
  if (::fstat(fd_.get(), &status) == 0 && status.st_nlink > 0) return ReopenOutcome::unchanged;
  FileDescriptor reopened_file(::open(path_.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (!reopened_file.is_open()) {
    error = errno_to_read_code(errno);
    return ReopenOutcome::gone;
  }
  fd_ = std::move(reopened_file);
  return ReopenOutcome::reopened;
}

Reading CounterFile::read() noexcept {
  Reading reading;
  reading.before_ns = monotonic_ns();
  reading.code = read_until_stable(reading.raw);
  const bool may_be_replaced = reading.code != ReadCode::ok || reading.raw == last_raw_value_;
  if (!is_pseudo_file_ && may_be_replaced && reopen_if_replaced(reading.code) == ReopenOutcome::reopened) {
    reading.code = read_until_stable(reading.raw);
  }
  if (reading.code == ReadCode::ok) last_raw_value_ = reading.raw;
  reading.after_ns = monotonic_ns();
  return reading;
}

Result<CounterFile> open_counter_file(const std::string& path) {
  Result<CounterFile> file = CounterFile::open(path);
  if (!file) return file;
  const Reading reading = file->read();
  switch (reading.code) {
    case ReadCode::ok:
      return file;
    case ReadCode::garbage:
    case ReadCode::torn: {
      const Result<std::string> text = read_file_start(path, 64);
      return Error{ErrorCode::malformed, fmt::format("{}: {} is not a number", path, quoted(text ? *text : "")), {}};
    }
    case ReadCode::vanished:
      return Error{ErrorCode::not_found, fmt::format("{}: no longer exists", path), {}};
    case ReadCode::denied:
      return Error{ErrorCode::permission, fmt::format("{}: permission denied", path), {}};
    case ReadCode::skipped:
    case ReadCode::failed: {
      Result<std::string> text = read_file_start(path, 64);
      if (!text) return std::move(text).error();
      return Error{ErrorCode::io, fmt::format("{}: cannot be read", path), {}};
    }
  }
  return file;
}

}  // namespace joulemap::sensors
