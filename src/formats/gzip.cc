// SPDX-License-Identifier: Apache-2.0
// unity: alone (cmake/unity_groups.py), so that only programs that call these functions link ISA-L
#include "formats/gzip.h"

#include <isa-l/igzip_lib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "base/small_file.h"

namespace joulemap::formats {
namespace {

constexpr std::size_t kReadChunkBytes = 1 << 18;
constexpr unsigned char kGzipMagic[2] = {0x1f, 0x8b};

// Returns the number of bytes read: fewer than out.size() only at the end of the file.
Result<std::size_t> read_fully(int file, std::span<char> out, const std::string& path) {
  std::size_t read_size = 0;
  while (read_size < out.size()) {
    const ssize_t count = ::read(file, out.data() + read_size, out.size() - read_size);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return system_error("read", path, errno);
    if (count == 0) break;
    read_size += static_cast<std::size_t>(count);
  }
  return read_size;
}

}  // namespace

struct MaybeGzipFile::Inflater {
  inflate_state state;
  bool is_inside_member = true;
};

MaybeGzipFile::MaybeGzipFile(std::string path, FileDescriptor file) : path_(std::move(path)), file_(std::move(file)) {}
MaybeGzipFile::MaybeGzipFile(MaybeGzipFile&&) noexcept = default;
MaybeGzipFile& MaybeGzipFile::operator=(MaybeGzipFile&&) noexcept = default;
MaybeGzipFile::~MaybeGzipFile() = default;

Result<MaybeGzipFile> MaybeGzipFile::open(const std::string& path) {
  Result<FileDescriptor> file = open_for_reading(path);
  if (!file) return std::move(file).error();
  MaybeGzipFile opened_file(path, std::move(*file));
  struct stat info = {};
  if (::fstat(opened_file.file_.get(), &info) == 0 && info.st_size > 0)
    opened_file.size_ = static_cast<std::uint64_t>(info.st_size);
  if (Status status = opened_file.refill_input(); !status) return std::move(status).error();
  const std::vector<unsigned char>& start = opened_file.unread_input_;
  if (start.size() >= sizeof kGzipMagic && std::equal(std::begin(kGzipMagic), std::end(kGzipMagic), start.begin())) {
    opened_file.inflater_ = std::make_unique<Inflater>();
    isal_inflate_init(&opened_file.inflater_->state);
    opened_file.inflater_->state.crc_flag = ISAL_GZIP;
  }
  return opened_file;
}

// Reads the next block of the file into unread_input_. All bytes of the previous block must have been consumed.
Status MaybeGzipFile::refill_input() {
  unread_input_.resize(kReadChunkBytes);
  unread_offset_ = 0;
  const std::span<char> input_buffer(reinterpret_cast<char*>(unread_input_.data()), unread_input_.size());
  const Result<std::size_t> read_size = read_fully(file_.get(), input_buffer, path_);
  if (!read_size) return read_size.error();
  bytes_read_ += *read_size;
  is_at_file_end_ = *read_size < unread_input_.size();
  unread_input_.resize(*read_size);
  return Done{};
}

Result<std::size_t> MaybeGzipFile::read(std::span<char> out) {
  if (stream_state_ != StreamState::reading) return std::size_t{0};
  return inflater_ == nullptr ? read_uncompressed(out) : read_compressed(out);
}

// Copies the bytes that open() read to detect gzip, then reads the file directly into `out`.
Result<std::size_t> MaybeGzipFile::read_uncompressed(std::span<char> out) {
  const std::size_t buffered_size = std::min(out.size(), unread_input_.size() - unread_offset_);
  std::memcpy(out.data(), unread_input_.data() + unread_offset_, buffered_size);
  unread_offset_ += buffered_size;
  if (buffered_size == out.size()) return buffered_size;
  Result<std::size_t> read_size = read_fully(file_.get(), out.subspan(buffered_size), path_);
  if (!read_size) return read_size;
  bytes_read_ += *read_size;
  if (buffered_size + *read_size < out.size()) stream_state_ = StreamState::complete;
  return buffered_size + *read_size;
}

// If another gzip member begins at the next byte, prepares to inflate it and returns true. Zeros and other bytes after
// the last member are ignored as padding, as gzip does.
bool MaybeGzipFile::begin_gzip_member() {
  if (unread_offset_ == unread_input_.size() || unread_input_[unread_offset_] != kGzipMagic[0]) return false;
  isal_inflate_reset(&inflater_->state);
  inflater_->state.crc_flag = ISAL_GZIP;
  inflater_->is_inside_member = true;
  return true;
}

Result<std::size_t> MaybeGzipFile::read_compressed(std::span<char> out) {
  inflate_state& state = inflater_->state;
  state.next_out = reinterpret_cast<std::uint8_t*>(out.data());
  state.avail_out = static_cast<std::uint32_t>(out.size());
  while (state.avail_out > 0 && stream_state_ == StreamState::reading) {
    if (unread_offset_ == unread_input_.size() && !is_at_file_end_) {
      if (Status status = refill_input(); !status) return std::move(status).error();
    }
    if (!inflater_->is_inside_member && !begin_gzip_member()) {
      stream_state_ = StreamState::complete;
      break;
    }
    const std::uint32_t output_space_before = state.avail_out;
    state.next_in = unread_input_.data() + unread_offset_;
    state.avail_in = static_cast<std::uint32_t>(unread_input_.size() - unread_offset_);
    const int code = isal_inflate(&state);
    const bool has_progressed =
        state.avail_out != output_space_before || state.avail_in != unread_input_.size() - unread_offset_;
    unread_offset_ = unread_input_.size() - state.avail_in;
    if (code != ISAL_DECOMP_OK && code != ISAL_END_INPUT) {
      stream_state_ = StreamState::damaged;
    } else if (state.block_state == ISAL_BLOCK_FINISH) {
      inflater_->is_inside_member = false;
    } else if (!has_progressed && is_at_file_end_ && unread_offset_ == unread_input_.size()) {
      stream_state_ = StreamState::truncated;
    }
  }
  return out.size() - state.avail_out;
}

}  // namespace joulemap::formats
