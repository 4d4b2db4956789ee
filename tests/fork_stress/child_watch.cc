// SPDX-License-Identifier: Apache-2.0
#include "child_watch.h"

#include <poll.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

namespace {

std::string read_file_text(const std::filesystem::path& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

void print_stacks(pid_t child) {
  std::error_code error;  // it may end meanwhile
  const std::string tasks = "/proc/" + std::to_string(child) + "/task";
  for (const auto& task : std::filesystem::directory_iterator(tasks, error)) {
    std::fprintf(stderr, "thread %s: %swaits in %s, system call %s%s", task.path().filename().c_str(),
                 read_file_text(task.path() / "comm").c_str(), read_file_text(task.path() / "wchan").c_str(),
                 read_file_text(task.path() / "syscall").c_str(), read_file_text(task.path() / "stack").c_str());
  }
  const std::string debugger = "gdb -p " + std::to_string(child) + " -batch -ex 'thread apply all bt 25' 1>&2";
  if (std::system("command -v gdb >/dev/null") != 0 || std::system(debugger.c_str()) != 0) {
    std::fprintf(stderr, "(gdb shows more, where it is installed)\n");
  }
}

// False when it still runs after the limit.
bool has_ended_within(pid_t child, int limit_s) {
  const int descriptor = static_cast<int>(::syscall(SYS_pidfd_open, child, 0));
  if (descriptor < 0) return true;  // no such system call: waitpid waits, and ctest has a limit, too
  pollfd end{descriptor, POLLIN, 0};
  int ready_count = 0;
  do {
    ready_count = ::poll(&end, 1, limit_s * 1000);
  } while (ready_count < 0 && errno == EINTR);
  ::close(descriptor);
  return ready_count > 0;
}

}  // namespace

bool wait_for_success(pid_t child, const char* child_label, bool is_killed, int limit_s) {
  if (child < 0) {
    std::perror(child_label);
    return false;
  }
  const bool is_hanging = !has_ended_within(child, limit_s);
  if (is_hanging) {
    std::fprintf(stderr, "process %d (%s) hangs since %d s:\n", child, child_label, limit_s);
    print_stacks(child);
    ::kill(child, SIGKILL);
  }
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  if (is_hanging) return false;
  const bool has_expected_status =
      is_killed ? WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL : WIFEXITED(status) && WEXITSTATUS(status) == 0;
  if (!has_expected_status) {
    std::fprintf(stderr, "process %d (%s) ended by %s %d\n", child, child_label,
                 WIFSIGNALED(status) ? "signal" : "exit code",
                 WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status));
  }
  return has_expected_status;
}
