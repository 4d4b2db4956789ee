// SPDX-License-Identifier: Apache-2.0
#include "command.h"

#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>

#include "base/check.h"
#include "base/small_file.h"

namespace joulemap::simulated {
namespace {

sigset_t make_blocked_signal_set() {
  sigset_t signals;
  sigemptyset(&signals);
  for (const int signal : {SIGINT, SIGTERM, SIGCHLD}) sigaddset(&signals, signal);
  return signals;
}

}  // namespace

void block_signals() {
  // If SIGCHLD is ignored by inheritance, the kernel reaps children without their exit status.
  ::signal(SIGCHLD, SIG_DFL);
  const sigset_t signals = make_blocked_signal_set();
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
}

Result<Command> Command::start(const std::vector<std::string>& arguments) {
  JOULEMAP_CHECK(!arguments.empty(), "a command without a name");
  std::vector<char*> argv;
  for (const std::string& argument : arguments) argv.push_back(const_cast<char*>(argument.c_str()));
  argv.push_back(nullptr);

  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  sigset_t empty_mask;
  sigemptyset(&empty_mask);
  posix_spawnattr_setsigmask(&attributes, &empty_mask);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK);
  pid_t pid = 0;
  const int error = posix_spawnp(&pid, argv[0], nullptr, &attributes, argv.data(), environ);
  posix_spawnattr_destroy(&attributes);
  if (error != 0) return system_error("start", arguments[0], error);
  return Command(pid);
}

void Command::wait_until_ended() const {
  const sigset_t signals = make_blocked_signal_set();
  while (!has_ended()) {
    siginfo_t info{};
    const int signal = sigwaitinfo(&signals, &info);
    if (signal != SIGINT && signal != SIGTERM) continue;
    // Signals from the terminal (Ctrl-C) have reached the command already.
    if (info.si_code != SI_KERNEL) ::kill(pid_, signal);
  }
}

bool Command::has_ended() const {
  siginfo_t info{};
  const int result = ::waitid(P_PID, static_cast<id_t>(pid_), &info, WEXITED | WNOHANG | WNOWAIT);
  return result == 0 && info.si_pid == pid_;
}

int Command::exit_code() const {
  int status = 0;
  while (::waitpid(pid_, &status, 0) < 0 && errno == EINTR) {
  }
  return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

}  // namespace joulemap::simulated
