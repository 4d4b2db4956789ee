// SPDX-License-Identifier: Apache-2.0
#include "cli/model_file.h"

#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "base/small_file.h"
#include "formats/gzip.h"

namespace joulemap::cli {
namespace {

constexpr std::size_t kReadChunk_bytes = 1 << 16;
// Protobuf, and thus every ONNX file, is limited to 2 GiB.
constexpr std::size_t kMaxBytes = std::size_t{2} << 30;
// Limit of the decompressed size; tables of measurements have a few megabytes.
constexpr std::size_t kMaxUnpacked_bytes = std::size_t{512} << 20;

Error file_too_large_error(std::string_view path, std::size_t max_bytes) {
  return {ErrorCode::malformed, fmt::format("{} is larger than {} MB", path, max_bytes >> 20), ""};
}

Result<std::string> read_to_end(int descriptor, std::string_view path) {
  std::string text;
  while (true) {
    const std::size_t previous_size = text.size();
    text.resize(previous_size + kReadChunk_bytes);
    const ssize_t read_byte_count = ::read(descriptor, text.data() + previous_size, kReadChunk_bytes);
    if (read_byte_count < 0 && errno == EINTR) {
      text.resize(previous_size);
      continue;
    }
    if (read_byte_count < 0) return system_error("read", path, errno);
    text.resize(previous_size + static_cast<std::size_t>(read_byte_count));
    if (read_byte_count == 0) return text;
    if (text.size() > kMaxBytes) return file_too_large_error(path, kMaxBytes);
  }
}

}  // namespace

Result<ModelFile> ModelFile::open(const std::string& path) {
  if (path == "-") {
    Result<std::string> text = read_to_end(STDIN_FILENO, "stdin");
    if (!text) return std::move(text).error();
    return ModelFile(std::move(*text));
  }
  Result<FileDescriptor> file = open_for_reading(path);
  if (!file) return std::move(file).error();
  struct stat status = {};
  if (::fstat(file->get(), &status) != 0) return system_error("stat", path, errno);
  if (S_ISDIR(status.st_mode)) {
    return Error{ErrorCode::malformed, path + " is a folder", "pass the model file in it: .onnx or .json"};
  }
  const auto size = static_cast<std::size_t>(status.st_size);
  if (!S_ISREG(status.st_mode) || size == 0) {
    Result<std::string> text = read_to_end(file->get(), path);
    if (!text) return std::move(text).error();
    return ModelFile(std::move(*text));
  }
  if (size > kMaxBytes) return file_too_large_error(path, kMaxBytes);
  void* const mapped_bytes = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, file->get(), 0);
  if (mapped_bytes == MAP_FAILED) return system_error("mmap", path, errno);
  return ModelFile(mapped_bytes, size);
}

ModelFile::ModelFile(ModelFile&& other_file) noexcept
    : text_(std::move(other_file.text_)),
      mapped_(std::exchange(other_file.mapped_, nullptr)),
      size_(std::exchange(other_file.size_, 0)) {}

ModelFile::~ModelFile() {
  if (mapped_ != nullptr) ::munmap(mapped_, size_);
}

std::string_view ModelFile::bytes() const {
  return mapped_ != nullptr ? std::string_view(static_cast<const char*>(mapped_), size_) : std::string_view(text_);
}

Result<std::string> read_plain_or_gzip_file(const std::string& path) {
  Result<formats::MaybeGzipFile> file = formats::MaybeGzipFile::open(path);
  if (!file) return std::move(file).error();
  std::string text;
  while (true) {
    const std::size_t previous_size = text.size();
    text.resize(previous_size + kReadChunk_bytes);
    const Result<std::size_t> read_byte_count = file->read({text.data() + previous_size, kReadChunk_bytes});
    if (!read_byte_count) return read_byte_count.error();
    text.resize(previous_size + *read_byte_count);
    if (*read_byte_count == 0) break;
    if (text.size() > kMaxUnpacked_bytes) return file_too_large_error(path, kMaxUnpacked_bytes);
  }
  if (file->stream_state() == formats::StreamState::truncated ||
      file->stream_state() == formats::StreamState::damaged) {
    return Error{ErrorCode::malformed, path + " is truncated or damaged", "export or download it again"};
  }
  return text;
}

}  // namespace joulemap::cli
