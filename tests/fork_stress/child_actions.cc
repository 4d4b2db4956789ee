// SPDX-License-Identifier: Apache-2.0
#include "child_actions.h"

#include <poll.h>
#include <pthread.h>
#include <spawn.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <thread>
#include <vector>

#include "child_watch.h"
#include "joulemap/capture.h"
#include "joulemap/joulemap.h"
#include "slow_allocations.h"

extern char** environ;

namespace {

char program[] = "/bin/true";
char* const kExecArguments[] = {program, nullptr};

// So that whoever notices first that something hangs is the one that can show it.
constexpr int kGrandchildTimeout_s = kHangTimeout_s / 2;

thread_local constinit pid_t forked_in_handler = 0;

bool measure_by_steps() {
  jm_options options{};
  options.size = sizeof options;
  if (jm_start(&options) != JM_OK) return false;
  const jm_window window = jm_begin("by steps");
  if (jm_end(window) != JM_OK) return false;
  jm_energy energy{};
  energy.size = sizeof energy;
  if (jm_window_wait(window, &energy) != JM_OK) return false;
  jm_window_free(window);
  return jm_stop() == JM_OK && measure_once();
}

bool measure_on_threads() {
  std::vector<std::thread> threads;
  bool went_well[2] = {};
  for (bool& has_succeeded : went_well) threads.emplace_back([&has_succeeded] { has_succeeded = measure_once(); });
  for (std::thread& thread : threads) thread.join();
  return went_well[0] && went_well[1] && measure_once();
}

bool fork_again() {
  const pid_t grandchild = ::fork();
  if (grandchild == 0) std::exit(measure_once() ? 0 : 1);
  return wait_for_success(grandchild, "grandchild", false, kGrandchildTimeout_s) && measure_once();
}

[[noreturn]] void measure_until_killed(int ready_fd) {
  while (true) {
    const bool went_well = measure_once();
    if (::write(ready_fd, went_well ? "+" : "-", 1) < 0 || !went_well) ::_exit(1);
  }
}

bool kill_measuring_child() {
  int ready_pipe[2] = {};
  if (::pipe(ready_pipe) != 0) return false;
  const pid_t child = ::fork();
  if (child == 0) measure_until_killed(ready_pipe[1]);
  ::close(ready_pipe[1]);
  // After its first window, or at any moment before.
  char answer = '+';
  pollfd ready_poll{ready_pipe[0], POLLIN, 0};
  const bool waits = child % 2 == 0;
  const bool is_hanging = waits && ::poll(&ready_poll, 1, kHangTimeout_s * 1000) == 0;
  if (waits && !is_hanging && ::read(ready_pipe[0], &answer, 1) != 1) answer = '-';
  if (!is_hanging) ::kill(child, SIGKILL);
  ::close(ready_pipe[0]);
  return wait_for_success(child, "killed", true, is_hanging ? 0 : kHangTimeout_s) && answer == '+';
}

bool spawn_children() {
  pid_t spawned_pid = -1;
  if (::posix_spawn(&spawned_pid, program, nullptr, nullptr, kExecArguments, environ) != 0) return false;
  const pid_t child = ::vfork();
  if (child == 0) {
    ::execve(program, kExecArguments, environ);
    ::_exit(127);
  }
  const bool has_spawn_succeeded = wait_for_success(spawned_pid, "spawned");
  return wait_for_success(child, "vfork", false) && has_spawn_succeeded;
}

bool fork_in_handler() {
  forked_in_handler = -1;
  ::pthread_kill(::pthread_self(), SIGUSR1);
  return wait_for_success(forked_in_handler, "forked in a signal handler");
}

// In the child.
[[noreturn]] void perform_action(ChildAction action) {
  switch (action) {
    case ChildAction::measures:
      std::exit(measure_once() ? 0 : 1);
    case ChildAction::calls_start_and_stop:
      std::exit(measure_by_steps() ? 0 : 1);
    case ChildAction::measures_on_threads:
      std::exit(measure_on_threads() ? 0 : 1);
    case ChildAction::forks_again:
      std::exit(fork_again() ? 0 : 1);
    case ChildAction::calls_exec:
      ::execve(program, kExecArguments, environ);
      ::_exit(127);
    case ChildAction::calls_exit:
      std::exit(0);
    default:
      ::_exit(0);
  }
}

}  // namespace

const char* name_of(ChildAction action) {
  constexpr const char* kNames[kActionCount] = {"exits",       "exits at once", "measures",    "measures by steps",
                                                "calls exec",  "is killed",     "forks again", "ends its thread",
                                                "has threads", "is cloned",     "is spawned",  "forks in a handler"};
  return kNames[static_cast<int>(action)];
}

bool measure_once() {
  const jm_window window = jm_begin("window");
  if (window == 0) {
    std::fprintf(stderr, "process %d: jm_begin: %s\n", ::getpid(), jm_last_error());
    return false;
  }
  jm_region_push("region");
  jm_step(nullptr);
  jm_log("loss", 1);
  const bool has_popped_region = jm_region_pop() == JM_OK;
  const bool has_ended = jm_end(window) == JM_OK;
  jm_window_free(window);
  return has_popped_region && has_ended;
}

void handle_fork_signal() {
  const pid_t child = ::fork();
  if (child == 0) {
    disable_allocation_delays();
    ::_exit(measure_once() ? 0 : 1);
  }
  forked_in_handler = child;
}

bool fork_child(ChildAction action, bool& ends_thread) {
  if (action == ChildAction::is_killed) return kill_measuring_child();
  if (action == ChildAction::is_spawned) return spawn_children();
  if (action == ChildAction::forks_in_handler) return fork_in_handler();
  const bool is_cloned = action == ChildAction::is_cloned;
  const pid_t child = is_cloned ? static_cast<pid_t>(::syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0)) : ::fork();
  if (child == 0 && is_cloned) {
    jmc_finish();  // does nothing here: no thread of ours is in this process
    ::_exit(0);
  }
  if (child == 0 && action == ChildAction::exits_only_thread) {
    ends_thread = true;
    return true;
  }
  if (child == 0) perform_action(action);
  return wait_for_success(child, name_of(action));
}
