// SPDX-License-Identifier: Apache-2.0
//
// LoadLog: what a GPU does according to the fake CUDA driver, for the fake NVML. A file that both map, because two
// libraries of one process share no more state than two processes do. One writer, any number of readers. Events are in
// order of time and may lie in the future: a launch writes at once when its kernel will end.
#pragma once

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <string>

namespace joulemap::fake_cuda {

enum class LoadState : std::int64_t { nothing, context, kernel };

struct LoadEvent {
  std::int64_t time_ns;  // start, ns of CLOCK_MONOTONIC
  LoadState load_state;
};

class LoadLog {
 public:
  static constexpr std::size_t kMaxEvents = 1 << 16;

  // Creates the file if it does not exist.
  explicit LoadLog(const std::string& path) {
    const int file = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (file < 0) return;
    if (::ftruncate(file, sizeof(LogContent)) == 0) {
      void* mapped_content = ::mmap(nullptr, sizeof(LogContent), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
      if (mapped_content != MAP_FAILED) content_ = static_cast<LogContent*>(mapped_content);
    }
    ::close(file);
  }

  bool is_open() const { return content_ != nullptr; }
  void add(std::int64_t time_ns, LoadState load_state) {
    const std::uint64_t count = content_->count.load(std::memory_order_relaxed);
    if (count == kMaxEvents) return;
    content_->events[count] = {time_ns, load_state};
    content_->count.store(count + 1, std::memory_order_release);
  }
  std::size_t size() const { return content_ == nullptr ? 0 : content_->count.load(std::memory_order_acquire); }
  LoadEvent at(std::size_t index) const { return content_->events[index]; }

 private:
  struct LogContent {
    std::atomic<std::uint64_t> count;
    LoadEvent events[kMaxEvents];
  };
  LogContent* content_ = nullptr;  // never unmapped
};

}  // namespace joulemap::fake_cuda
