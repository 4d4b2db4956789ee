// SPDX-License-Identifier: Apache-2.0
#include "experiment/run/child_run.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>

#include "base/clock.h"
#include "base/file_descriptor.h"
#include "base/private_files.h"
#include "base/process_tree.h"
#include "base/small_file.h"
#include "base/text.h"

namespace joulemap::experiment {
namespace {

constexpr double kTerminationGrace_s = 10;  // from SIGTERM to SIGKILL

Result<FileDescriptor> create_new_file(const std::string& path) {
  FileDescriptor fd(::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_APPEND | O_CLOEXEC, kPrivateFileMode));
  if (!fd.is_open()) return system_error("open", path, errno);
  return fd;
}

// Kills all descendants: killing only the recorder would leave its command running.
void kill_process_tree(pid_t root) {
  const Result<std::vector<std::string>> names = list_directory("/proc");
  std::vector<pid_t> descendant_pids;
  if (names) {
    for (const std::string& name : *names) {
      const std::optional<std::uint64_t> pid = parse_u64(name);
      if (pid && descends_from(static_cast<pid_t>(*pid), root)) descendant_pids.push_back(static_cast<pid_t>(*pid));
    }
  }
  for (const pid_t pid : descendant_pids) ::kill(pid, SIGKILL);
  ::kill(root, SIGKILL);
}

class ChildWaiter {
 public:
  ChildWaiter(BlockedSignals& signals, const ChildCommand& run, pid_t pid)
      : signals_(signals),
        run_(run),
        pid_(pid),
        exit_descriptor_(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0))),
        begin_ns_(monotonic_ns()) {}

  ChildResult wait_for_exit(const std::function<void(double)>& on_tick) {
    while (!try_reap()) {
      std::array<pollfd, 2> poll_descriptors{{{signals_.fd(), POLLIN, 0}, {exit_descriptor_.get(), POLLIN, 0}}};
      const timespec poll_timeout = to_timespec(kNanosecondsPerSecond);
      ::ppoll(poll_descriptors.data(), exit_descriptor_.is_open() ? 2 : 1, &poll_timeout, nullptr);
      handle_signals();
      const double elapsed_s = seconds(monotonic_ns() - begin_ns_);
      enforce_time_limit(elapsed_s);
      if (on_tick) on_tick(elapsed_s);
    }
    return child_result_;
  }

 private:
  bool try_reap() {
    int status = 0;
    const pid_t pid = ::waitpid(pid_, &status, WNOHANG);
    if (pid == pid_) child_result_.exit_status = ExitStatus::from_wait_status(status);
    return pid == pid_ || (pid < 0 && errno == ECHILD);
  }

  void handle_signals() {
    while (const std::optional<signalfd_siginfo> signal = signals_.next()) {
      if (!is_termination_signal(*signal)) continue;
      if (child_result_.stop_requested) {
        kill_process_tree(pid_);
      } else if (!is_signal_from_terminal(*signal)) {
        ::kill(pid_, static_cast<int>(signal->ssi_signo));
      }
      child_result_.stop_requested = true;
    }
  }

  void enforce_time_limit(double elapsed_s) {
    if (!run_.time_limit_s || elapsed_s < *run_.time_limit_s) return;
    if (!child_result_.has_timed_out) ::kill(pid_, SIGTERM);
    child_result_.has_timed_out = true;
    if (elapsed_s > *run_.time_limit_s + kTerminationGrace_s) kill_process_tree(pid_);
  }

  BlockedSignals& signals_;
  const ChildCommand& run_;
  pid_t pid_;
  FileDescriptor
      exit_descriptor_;  // readable when the child ends; not open on kernels before 5.3, which only send SIGCHLD
  std::int64_t begin_ns_;
  ChildResult child_result_;
};

}  // namespace

Result<ChildResult> run_child(BlockedSignals& signals, const ChildCommand& run,
                              const std::function<void(double)>& on_tick) {
  const Result<FileDescriptor> output = create_new_file(run.output_path);
  if (!output) return output.error();
  const Result<FileDescriptor> error_output = create_new_file(run.error_path);
  if (!error_output) return error_output.error();
  const ChildProcessOptions setting{run.directory, output->get(), error_output->get(), SIGTERM};
  Result<ChildProcess> child = ChildProcess::prepare(run.command, signals.original_mask(), run.environment, setting);
  if (!child) return std::move(child).error();
  if (Status start_status = child->execute(); !start_status) return std::move(start_status).error();
  return ChildWaiter(signals, run, child->pid()).wait_for_exit(on_tick);
}

}  // namespace joulemap::experiment
