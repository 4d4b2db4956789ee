// SPDX-License-Identifier: Apache-2.0
//
// LoadLog: what the fake CUDA driver has a GPU do, for the fake NVML to show: a file that both map, since two libraries of
// one process see no more of each other than two processes do. One writer, any readers; events are in order of time, and
// may lie ahead: a launch says at once when its kernel will end.
#pragma once

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <string>

namespace joulemap::fake_cuda {

enum class Doing : std::int64_t { nothing, context, kernel };

struct LoadEvent {
  std::int64_t time_ns;  // CLOCK_MONOTONIC: from here on
  Doing doing;
};

class LoadLog {
 public:
  static constexpr std::size_t kMostEvents = 1 << 16;

  // The file is made where there is none.
  explicit LoadLog(const std::string& path) {
    const int file = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (file < 0) return;
    if (::ftruncate(file, sizeof(Content)) == 0) {
      void* mapped = ::mmap(nullptr, sizeof(Content), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
      if (mapped != MAP_FAILED) content_ = static_cast<Content*>(mapped);
    }
    ::close(file);
  }

  bool is_open() const { return content_ != nullptr; }
  void add(std::int64_t time_ns, Doing doing) {
    const std::uint64_t count = content_->count.load(std::memory_order_relaxed);
    if (count == kMostEvents) return;
    content_->events[count] = {time_ns, doing};
    content_->count.store(count + 1, std::memory_order_release);
  }
  std::size_t size() const { return content_ == nullptr ? 0 : content_->count.load(std::memory_order_acquire); }
  LoadEvent at(std::size_t index) const { return content_->events[index]; }

 private:
  struct Content {
    std::atomic<std::uint64_t> count;
    LoadEvent events[kMostEvents];
  };
  Content* content_ = nullptr;  // stays mapped
};

}  // namespace joulemap::fake_cuda
