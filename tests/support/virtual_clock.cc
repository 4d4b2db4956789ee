// SPDX-License-Identifier: Apache-2.0
#include "support/virtual_clock.h"

#include <dlfcn.h>
#include <linux/futex.h>
#include <pthread.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <condition_variable>
#include <cstdarg>
#include <ctime>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "base/check.h"
#include "base/clock.h"

namespace joulemap {
namespace {

constexpr std::int64_t kVirtualBegin_ns = 1000 * kNanosecondsPerSecond;
constexpr std::int64_t kUnixAtVirtualZero_ns = 1'700'000'000 * kNanosecondsPerSecond;

std::int64_t timespec_to_ns(const timespec& time) {
  return static_cast<std::int64_t>(time.tv_sec) * kNanosecondsPerSecond + time.tv_nsec;
}

struct VirtualThread {
  std::int64_t time_ns = 0;          // virtual time at which it continues
  std::int64_t cpu_ns = 0;           // total CPU time
  const void* futex_word = nullptr;  // futex that it waits for
  std::condition_variable turn_condition;
};

// Scheduler of the virtual threads. A thread takes part from its creation until its end; one older than the clock, from
// its first clock reading.
class VirtualScheduler {
 public:
  bool is_on() const { return is_enabled_.load(std::memory_order_relaxed); }

  void begin() {
    const std::lock_guard lock(mutex_);
    JOULEMAP_CHECK(!is_enabled_ && members_.empty(), "there is one virtual clock at a time");
    begin_ns_ = kVirtualBegin_ns;
    is_enabled_ = true;
  }

  void end() {
    const std::lock_guard lock(mutex_);
    is_enabled_ = false;
    for (VirtualThread* member : members_) member->turn_condition.notify_one();
    members_.clear();
  }

  // Registers a thread that the caller is about to create. It starts at this virtual time, however late the machine
  // runs it.
  std::unique_ptr<VirtualThread> register_new_thread() {
    const std::lock_guard lock(mutex_);
    auto thread = std::make_unique<VirtualThread>();
    thread->time_ns = join_this_thread().time_ns;
    members_.push_back(thread.get());
    return thread;
  }

  // Called by the new thread itself.
  void adopt_thread(std::unique_ptr<VirtualThread> thread) {
    std::unique_lock lock(mutex_);
    VirtualThread& self = *thread;
    this_thread_registration().thread = std::move(thread);
    wait_for_turn(lock, self);
  }

  struct ClockValues {
    std::int64_t time_ns;
    std::int64_t cpu_ns;
  };
  ClockValues read_clock() {
    std::unique_lock lock(mutex_);
    VirtualThread& self = join_this_thread();
    self.time_ns += VirtualClock::kClockReadCost_ns;
    self.cpu_ns += VirtualClock::kClockReadCost_ns;
    wait_for_turn(lock, self);
    return {self.time_ns, self.cpu_ns};
  }

  void sleep_until(std::int64_t deadline_ns) {
    std::unique_lock lock(mutex_);
    VirtualThread& self = join_this_thread();
    self.time_ns = std::max(self.time_ns, deadline_ns);
    wait_for_turn(lock, self);
  }

  void sleep_for(std::int64_t duration_ns) {
    std::unique_lock lock(mutex_);
    VirtualThread& self = join_this_thread();
    self.time_ns += duration_ns;
    wait_for_turn(lock, self);
  }

  // The caller blocks forever: no thread waits for it any more.
  void exit_thread() {
    const std::lock_guard lock(mutex_);
    leave(join_this_thread(), lock);
  }

  void wait(const std::uint32_t* word, std::uint32_t expected_value, std::int64_t deadline_ns) {
    std::unique_lock lock(mutex_);
    VirtualThread& self = join_this_thread();
    if (__atomic_load_n(word, __ATOMIC_SEQ_CST) != expected_value) return;
    self.futex_word = word;
    self.time_ns = std::max(self.time_ns, deadline_ns);
    wait_for_turn(lock, self);
    self.futex_word = nullptr;
  }

  void wake_waiters(const void* word) {
    const std::lock_guard lock(mutex_);
    const VirtualThread& self = join_this_thread();
    for (VirtualThread* member : members_) {
      if (member->futex_word != word) continue;
      member->futex_word = nullptr;
      member->time_ns = std::min(member->time_ns, self.time_ns);
    }
  }

  void leave(VirtualThread& self) {
    const std::lock_guard lock(mutex_);
    leave(self, lock);
  }

 private:
  void leave(VirtualThread& self, const std::lock_guard<std::mutex>&) {
    if (std::erase(members_, &self) == 0) return;
    begin_ns_ = std::max(begin_ns_, self.time_ns);
    if (VirtualThread* next_thread = earliest_thread()) next_thread->turn_condition.notify_one();
  }

  struct ThreadRegistration {
    std::unique_ptr<VirtualThread> thread = std::make_unique<VirtualThread>();
    ~ThreadRegistration();
  };

  static ThreadRegistration& this_thread_registration() {
    static thread_local ThreadRegistration thread_registration;
    return thread_registration;
  }

  VirtualThread& join_this_thread() {
    VirtualThread& self = *this_thread_registration().thread;
    if (is_enabled_ && std::find(members_.begin(), members_.end(), &self) == members_.end()) {
      const VirtualThread* first_thread = earliest_thread();
      self.time_ns = first_thread == nullptr ? begin_ns_ : first_thread->time_ns;
      self.cpu_ns = 0;
      members_.push_back(&self);
    }
    return self;
  }

  // The thread with the earliest time; the oldest one among equals.
  VirtualThread* earliest_thread() const {
    const auto is_earlier = [](const VirtualThread* a, const VirtualThread* b) { return a->time_ns < b->time_ns; };
    const auto earliest_member = std::min_element(members_.begin(), members_.end(), is_earlier);
    return earliest_member == members_.end() ? nullptr : *earliest_member;
  }

  void wait_for_turn(std::unique_lock<std::mutex>& lock, VirtualThread& self) {
    VirtualThread* const next_thread = earliest_thread();
    if (next_thread == &self || !is_enabled_) return;
    if (next_thread != nullptr) next_thread->turn_condition.notify_one();
    self.turn_condition.wait(lock, [&] { return !is_enabled_ || earliest_thread() == &self; });
  }

  std::mutex mutex_;
  std::atomic<bool> is_enabled_{false};
  std::int64_t begin_ns_ = 0;
  std::vector<VirtualThread*> members_;
};

VirtualScheduler& virtual_threads() {
  static VirtualScheduler& threads = *new VirtualScheduler;  // never destroyed: threads that end late still use it
  return threads;
}

VirtualScheduler::ThreadRegistration::~ThreadRegistration() { virtual_threads().leave(*thread); }

// Start routine and argument of a thread created under a virtual clock.
struct ThreadStart {
  std::unique_ptr<VirtualThread> thread;
  void* (*routine)(void*);
  void* argument;
};

void* run_as_virtual_thread(void* thread_start) {
  const std::unique_ptr<ThreadStart> start(static_cast<ThreadStart*>(thread_start));
  virtual_threads().adopt_thread(std::move(start->thread));
  return start->routine(start->argument);
}

bool is_simulated(clockid_t clock) {
  return virtual_threads().is_on() && (clock == CLOCK_MONOTONIC || clock == CLOCK_REALTIME ||
                                       clock == CLOCK_THREAD_CPUTIME_ID || clock == CLOCK_PROCESS_CPUTIME_ID);
}

// The C library's function of this name.
template <class Function>
Function* find_libc_function(const char* name) {
  return reinterpret_cast<Function*>(::dlsym(RTLD_NEXT, name));
}

}  // namespace

VirtualClock::VirtualClock() {
  virtual_threads().begin();
  virtual_threads().read_clock();
}
VirtualClock::~VirtualClock() { virtual_threads().end(); }
void VirtualClock::advance(std::int64_t duration_ns) { virtual_threads().sleep_for(duration_ns); }

}  // namespace joulemap

// Replaces the C library's function in this program and all its libraries.
#define OVERRIDES_LIBC extern "C" __attribute__((visibility("default")))

using joulemap::find_libc_function;
using joulemap::virtual_threads;

OVERRIDES_LIBC int clock_gettime(clockid_t clock, timespec* time) noexcept {
  static auto* const real_clock_gettime = find_libc_function<int(clockid_t, timespec*)>("clock_gettime");
  if (!joulemap::is_simulated(clock)) return real_clock_gettime(clock, time);
  const auto clock_readings = virtual_threads().read_clock();
  const bool is_wall_clock = clock == CLOCK_MONOTONIC || clock == CLOCK_REALTIME;
  const std::int64_t origin_ns = clock == CLOCK_REALTIME ? joulemap::kUnixAtVirtualZero_ns : 0;
  *time = joulemap::to_timespec(is_wall_clock ? origin_ns + clock_readings.time_ns : clock_readings.cpu_ns);
  return 0;
}

OVERRIDES_LIBC int clock_nanosleep(clockid_t clock, int flags, const timespec* requested_time,
                                   timespec* remaining_time) {
  static auto* const real_clock_nanosleep =
      find_libc_function<int(clockid_t, int, const timespec*, timespec*)>("clock_nanosleep");
  if (!joulemap::is_simulated(clock)) return real_clock_nanosleep(clock, flags, requested_time, remaining_time);
  if ((flags & TIMER_ABSTIME) != 0) {
    virtual_threads().sleep_until(joulemap::timespec_to_ns(*requested_time));
  } else {
    virtual_threads().sleep_for(joulemap::timespec_to_ns(*requested_time));
  }
  return 0;
}

OVERRIDES_LIBC long syscall(long number, ...) noexcept {
  static auto* const real_syscall = find_libc_function<long(long, ...)>("syscall");
  long words[6];
  va_list list;
  va_start(list, number);
  for (long& word : words) word = va_arg(list, long);
  va_end(list);
  if (number == SYS_futex && virtual_threads().is_on()) {
    const auto operation = static_cast<int>(words[1]);
    if (operation == FUTEX_WAIT_BITSET_PRIVATE && words[3] != 0) {
      virtual_threads().wait(reinterpret_cast<const std::uint32_t*>(words[0]), static_cast<std::uint32_t>(words[2]),
                             joulemap::timespec_to_ns(*reinterpret_cast<const timespec*>(words[3])));
      return 0;
    }
    if (operation == FUTEX_WAKE_PRIVATE) virtual_threads().wake_waiters(reinterpret_cast<const void*>(words[0]));
  }
  return real_syscall(number, words[0], words[1], words[2], words[3], words[4], words[5]);
}

OVERRIDES_LIBC int pause() {
  static auto* const real_pause = find_libc_function<int()>("pause");
  if (virtual_threads().is_on()) virtual_threads().exit_thread();
  return real_pause();
}

OVERRIDES_LIBC int pthread_create(pthread_t* id, const pthread_attr_t* attributes, void* (*routine)(void*),
                                  void* argument) noexcept {
  using PthreadCreateFunction = int(pthread_t*, const pthread_attr_t*, void* (*)(void*), void*);
  static auto* const real_pthread_create = find_libc_function<PthreadCreateFunction>("pthread_create");
  if (!virtual_threads().is_on()) return real_pthread_create(id, attributes, routine, argument);
  auto* const start = new joulemap::ThreadStart{virtual_threads().register_new_thread(), routine, argument};
  const int failure = real_pthread_create(id, attributes, joulemap::run_as_virtual_thread, start);
  JOULEMAP_CHECK(failure == 0, "a test has room for its threads");
  return 0;
}
