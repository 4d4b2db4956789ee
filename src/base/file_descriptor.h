// SPDX-License-Identifier: Apache-2.0
//
// FileDescriptor: owns a file descriptor and closes it. Other code never calls close().
#pragma once

#include <unistd.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <utility>

namespace joulemap {

// Bitmap of owned descriptors, so that a forked child can close them without reading its parent's objects. Descriptors
// beyond the bitmap (4096 and above) stay open until the child ends or calls exec.
class OwnedDescriptors {
 public:
  void add(int fd) noexcept {
    if (is_in_bitmap(fd))
      bitmap_word_of_descriptor(fd).fetch_or(bitmap_mask_of_descriptor(fd), std::memory_order_relaxed);
  }
  void remove(int fd) noexcept {
    if (is_in_bitmap(fd))
      bitmap_word_of_descriptor(fd).fetch_and(~bitmap_mask_of_descriptor(fd), std::memory_order_relaxed);
  }
  // Called by the child's fork handler: a child that lives on must not keep a file of its parent locked.
  void close_all_descriptors() noexcept {
    for (std::size_t word = 0; word < kBitmapWordCount; ++word) {
      const std::uint64_t bits = bitmap_words_[word].exchange(0, std::memory_order_relaxed);
      for (std::size_t bit = 0; bit < 64; ++bit) {
        if ((bits >> bit & 1) != 0) ::close(static_cast<int>(word * 64 + bit));
      }
    }
  }

 private:
  static constexpr std::size_t kBitmapWordCount = 64;
  static bool is_in_bitmap(int fd) noexcept { return fd >= 0 && static_cast<std::size_t>(fd) < kBitmapWordCount * 64; }
  static std::uint64_t bitmap_mask_of_descriptor(int fd) noexcept {
    return std::uint64_t{1} << (static_cast<unsigned>(fd) % 64);
  }
  std::atomic<std::uint64_t>& bitmap_word_of_descriptor(int fd) noexcept {
    return bitmap_words_[static_cast<std::size_t>(fd) / 64];
  }

  std::atomic<std::uint64_t> bitmap_words_[kBitmapWordCount]{};
};

inline constinit OwnedDescriptors owned_descriptors;

class FileDescriptor {
 public:
  FileDescriptor() = default;
  explicit FileDescriptor(int fd) : fd_(fd) { owned_descriptors.add(fd); }
  FileDescriptor(FileDescriptor&& other_descriptor) noexcept : fd_(std::exchange(other_descriptor.fd_, -1)) {}
  FileDescriptor& operator=(FileDescriptor&& other_descriptor) noexcept {
    std::swap(fd_, other_descriptor.fd_);
    return *this;
  }
  FileDescriptor(const FileDescriptor&) = delete;
  FileDescriptor& operator=(const FileDescriptor&) = delete;
  ~FileDescriptor() { reset(); }

  int get() const { return fd_; }
  bool is_open() const { return fd_ >= 0; }
  void reset() {
    if (fd_ < 0) return;
    owned_descriptors.remove(fd_);
    ::close(std::exchange(fd_, -1));
  }

 private:
  int fd_ = -1;
};

}  // namespace joulemap
