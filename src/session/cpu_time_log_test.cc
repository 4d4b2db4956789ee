// SPDX-License-Identifier: Apache-2.0
#include "session/cpu_time_log.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <optional>
#include <vector>

#include "base/clock.h"
#include "base/cpu_times.h"
#include "session/command_cpu_time.h"

namespace joulemap::session {
namespace {

constexpr double kUsedCpuTime_s = 0.1;
constexpr std::int64_t kLongSearchPeriod_ns = 3600 * kNanosecondsPerSecond;

[[noreturn]] void use_cpu_until_killed() {
  ::alarm(60);  // if the test fails before it kills this process
  while (true) ::getppid();
}

double cpu_s_of(pid_t pid) {
  const Result<ProcessCpuTime> time = read_process_cpu_time(pid);
  return time ? time->process_cpu_s : 0;
}

void wait_until_process_used(pid_t pid, double cpu_s) {
  while (cpu_s_of(pid) < cpu_s) ::usleep(1000);
}

void kill_and_reap(pid_t pid) {
  ::kill(pid, SIGKILL);
  ::waitpid(pid, nullptr, 0);
}

std::optional<double> command_cpu_s(const std::vector<Sample>& samples) {
  for (const Sample& sample : samples) {
    if (sample.channel == 1) return 1e-3 * static_cast<double>(sample.reading.raw);
  }
  return std::nullopt;
}

TEST(CpuTimeLog, ReadsAnAttachedProcessAtEveryReadBecauseItCannotBeReadAfterItsEnd) {
  const pid_t pid = ::fork();
  ASSERT_GE(pid, 0);
  if (pid == 0) use_cpu_until_killed();
  CpuTimeLog log(0, pid);
  const std::optional<double> first_s = command_cpu_s(log.read_samples());
  wait_until_process_used(pid, first_s.value_or(0) + kUsedCpuTime_s);
  const std::optional<double> second_s = command_cpu_s(log.read_samples());
  kill_and_reap(pid);
  ASSERT_TRUE(first_s && second_s);
  EXPECT_GE(*second_s - *first_s, kUsedCpuTime_s - 0.001);
  EXPECT_FALSE(command_cpu_s(log.read_samples()));
}

// The attached process starts a child, and reaps it when it reads from its pipe.
TEST(AttachedProcessCpuTime, CountsADescendantOnceThatWasReapedAfterTheSearch) {
  std::array<int, 2> child_pipe{};
  std::array<int, 2> reap_pipe{};
  std::array<int, 2> reaped_pipe{};
  ASSERT_EQ(::pipe(child_pipe.data()) + ::pipe(reap_pipe.data()) + ::pipe(reaped_pipe.data()), 0);
  const pid_t attached = ::fork();
  ASSERT_GE(attached, 0);
  if (attached == 0) {
    const pid_t child = ::fork();
    if (child == 0) use_cpu_until_killed();
    char letter = 0;
    const bool is_started = ::write(child_pipe[1], &child, sizeof child) == sizeof child;
    if (is_started && ::read(reap_pipe[0], &letter, 1) == 1) kill_and_reap(child);
    if (::write(reaped_pipe[1], &letter, 1) == 1) ::pause();
    ::_exit(0);
  }
  pid_t child = 0;
  ASSERT_EQ(::read(child_pipe[0], &child, sizeof child), static_cast<ssize_t>(sizeof child));
  wait_until_process_used(child, kUsedCpuTime_s);
  AttachedProcessCpuTime time(attached, kLongSearchPeriod_ns);
  const std::optional<double> with_child_s = time.read_cpu_s();
  char letter = 0;
  ASSERT_EQ(::write(reap_pipe[1], &letter, 1), 1);
  ASSERT_EQ(::read(reaped_pipe[0], &letter, 1), 1);
  const std::optional<double> with_reaped_child_s = time.read_cpu_s();
  const Result<ProcessCpuTime> process = read_process_cpu_time(attached);
  kill_and_reap(attached);
  ASSERT_TRUE(with_child_s && with_reaped_child_s && process);
  EXPECT_GE(*with_child_s, kUsedCpuTime_s);
  EXPECT_NEAR(*with_reaped_child_s, process->process_cpu_s + process->reaped_children_cpu_s, 0.02);
  for (const auto& pipe : {child_pipe, reap_pipe, reaped_pipe}) {
    for (const int end : pipe) ::close(end);
  }
}

}  // namespace
}  // namespace joulemap::session
