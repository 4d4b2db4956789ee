// SPDX-License-Identifier: Apache-2.0
#include "session/measured_command.h"

#include <fmt/format.h>
#include <poll.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>

#include "base/clock.h"
#include "base/small_file.h"

namespace joulemap::session {

Status MeasuredCommand::prepare(std::span<const std::string> command, std::span<const std::string> environment) {
  Result<ChildProcess> child = ChildProcess::prepare(command, signals_.original_mask(), environment);
  if (!child) return std::move(child).error();
  child_ = std::move(*child);
  // Polled in addition to SIGCHLD, which a library's thread that does not block it may consume. Kernels before 5.3 have
  // no pidfd.
  child_pidfd_ = FileDescriptor(static_cast<int>(::syscall(SYS_pidfd_open, child_->pid(), 0)));
  return Done{};
}

Status MeasuredCommand::attach(pid_t pid) {
  attached_pidfd_ = FileDescriptor(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
  if (attached_pidfd_.is_open()) {
    pollfd end{attached_pidfd_.get(), POLLIN, 0};
    if (::poll(&end, 1, 0) <= 0) return Done{};
    return Error{ErrorCode::not_found, fmt::format("process {} has already ended", pid), "list the processes: ps -e"};
  }
  if (errno == ESRCH || errno == EINVAL) {
    return Error{ErrorCode::not_found, fmt::format("no process {}", pid), "list the processes: ps -e"};
  }
  Error error = system_error("watch", fmt::format("process {}", pid), errno);
  if (error.code == ErrorCode::unsupported) error.remedy = "watching a process needs Linux 5.3 or later";
  return error;
}

Status MeasuredCommand::execute_command() { return child_ ? child_->execute() : Status(Done{}); }

void MeasuredCommand::reap_child() {
  int status = 0;
  pid_t pid = 0;
  while ((pid = ::waitpid(-1, &status, WNOHANG)) > 0) {
    if (!child_ || pid != child_->pid()) continue;  // a reparented orphan
    exit_status_ = ExitStatus::from_wait_status(status);
    has_ended_ = true;
  }
}

void MeasuredCommand::handle_signals() {
  while (const std::optional<signalfd_siginfo> signal = signals_.next()) {
    const int number = static_cast<int>(signal->ssi_signo);
    if (number == SIGCHLD) {
      reap_child();
      continue;
    }
    const bool is_stop_signal = is_termination_signal(*signal);
    stop_requested_ = stop_requested_ || is_stop_signal;
    if (!child_) {
      has_ended_ = has_ended_ || is_stop_signal;
    } else if (!has_ended_ && !is_signal_from_terminal(*signal)) {
      ::kill(child_->pid(), number);
    }
  }
}

void MeasuredCommand::wait_until(std::int64_t deadline_ns) {
  // With a command, wait for its end; otherwise for that of the attached process.
  const FileDescriptor& end = child_ ? child_pidfd_ : attached_pidfd_;
  std::array<pollfd, 2> polled_fds{{{signals_.fd(), POLLIN, 0}, {end.get(), POLLIN, 0}}};
  const nfds_t count = end.is_open() ? 2 : 1;
  const timespec timeout = to_timespec(std::max<std::int64_t>(deadline_ns - monotonic_ns(), 0));
  if (::ppoll(polled_fds.data(), count, &timeout, nullptr) <= 0) return;
  if (polled_fds[0].revents != 0) handle_signals();
  if (count == 1 || polled_fds[1].revents == 0) return;
  if (child_) {
    reap_child();
  } else {
    has_ended_ = true;
  }
}

}  // namespace joulemap::session
