// SPDX-License-Identifier: Apache-2.0
#include "base/child_process.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <vector>

#include "base/small_file.h"
#include "base/write_fully.h"

namespace joulemap {
namespace {

constexpr int kCommandNotFoundExitCode = 127;
constexpr int kSignalExitCodeBase = 128;

struct Pipe {
  FileDescriptor read_end;
  FileDescriptor write_end;
};

Result<Pipe> make_pipe() {
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) return system_error("create", "a pipe", errno);
  return Pipe{FileDescriptor(ends[0]), FileDescriptor(ends[1])};
}

ssize_t read_with_eintr_retry(int fd, void* buffer, std::size_t size) {
  while (true) {
    const ssize_t read_size = ::read(fd, buffer, size);
    if (read_size >= 0 || errno != EINTR) return read_size;
  }
}

std::vector<char*> make_null_terminated_pointers(std::span<const std::string> texts) {
  std::vector<char*> pointers;
  for (const std::string& text : texts) pointers.push_back(const_cast<char*>(text.c_str()));
  return pointers;
}

// Of two variables with the same name some programs use the first, others (shells) the last: pass only one.
bool is_variable_overridden(std::string_view inherited, std::span<const std::string> environment) {
  const std::string_view name_with_equals_sign = inherited.substr(0, inherited.find('=') + 1);
  return !name_with_equals_sign.empty() &&
         std::any_of(environment.begin(), environment.end(),
                     [&](const std::string& variable) { return variable.starts_with(name_with_equals_sign); });
}

// Runs in the child between fork and exec: async-signal-safe calls only. Returns false and sets errno on failure.
bool apply_child_options(const ChildProcessOptions& options) {
  if (!options.directory.empty() && ::chdir(options.directory.c_str()) != 0) return false;
  if (options.stdout_fd >= 0 && ::dup2(options.stdout_fd, STDOUT_FILENO) < 0) return false;
  if (options.stderr_fd >= 0 && ::dup2(options.stderr_fd, STDERR_FILENO) < 0) return false;
  return options.parent_death_signal == 0 || ::prctl(PR_SET_PDEATHSIG, options.parent_death_signal) == 0;
}

[[noreturn]] void wait_for_start_then_exec(int start_fd, int failure, char* const* argv, char* const* environment,
                                           const sigset_t& signal_mask, const ChildProcessOptions& options) {
  char byte = 0;
  const bool has_applied_options = apply_child_options(options);
  const int setup_errno = errno;
  if (read_with_eintr_retry(start_fd, &byte, 1) != 1) ::_exit(0);  // the parent closed the pipe without execute()
  ::sigprocmask(SIG_SETMASK, &signal_mask, nullptr);
  errno = setup_errno;
  if (has_applied_options) ::execvpe(argv[0], argv, environment);
  const int error_number = errno;
  [[maybe_unused]] const ssize_t written_size = ::write(failure, &error_number, sizeof error_number);
  ::_exit(kCommandNotFoundExitCode);
}

}  // namespace

Result<ChildProcess> ChildProcess::prepare(std::span<const std::string> argv, const sigset_t& signal_mask,
                                           std::span<const std::string> environment,
                                           const ChildProcessOptions& options) {
  if (argv.empty()) return Error{ErrorCode::usage, "no command given", {}};
  Result<Pipe> start_pipe = make_pipe();
  if (!start_pipe) return std::move(start_pipe).error();
  Result<Pipe> failure = make_pipe();
  if (!failure) return std::move(failure).error();

  std::vector<char*> arguments = make_null_terminated_pointers(argv);
  arguments.push_back(nullptr);
  std::vector<char*> variables = make_null_terminated_pointers(environment);
  for (char** inherited = environ; *inherited != nullptr; ++inherited) {
    if (!is_variable_overridden(*inherited, environment)) variables.push_back(*inherited);
  }
  variables.push_back(nullptr);

  const pid_t pid = ::fork();
  if (pid < 0) return system_error("fork for", argv[0], errno);
  if (pid == 0) {
    start_pipe->write_end.reset();  // otherwise the child's read of the pipe would not end when the parent closes it
    wait_for_start_then_exec(start_pipe->read_end.get(), failure->write_end.get(), arguments.data(), variables.data(),
                             signal_mask, options);
  }
  return ChildProcess(pid, argv[0], std::move(start_pipe->write_end), std::move(failure->read_end));
}

Status ChildProcess::execute() {
  const char byte = 1;
  if (Status send_status = write_fully(start_pipe_.get(), {&byte, 1}, name_); !send_status) return send_status;
  start_pipe_.reset();
  int error_number = 0;
  const ssize_t read_size = read_with_eintr_retry(exec_error_pipe_.get(), &error_number, sizeof error_number);
  if (read_size == 0) return Done{};
  while (::waitpid(pid_, nullptr, 0) < 0 && errno == EINTR) {
  }
  Error error = system_error("execute", name_, error_number);
  error.code = ErrorCode::command_not_executable;
  if (error_number == EACCES) error.remedy = fmt::format("chmod +x {}, or run it with its interpreter", name_);
  if (error_number == ENOENT) {
    error = {ErrorCode::command_not_found, fmt::format("{}: no such command", name_),
             "check the spelling and PATH; a script also needs the interpreter of its first line"};
  }
  return error;
}

ExitStatus ExitStatus::from_wait_status(int wait_status) {
  if (WIFSIGNALED(wait_status)) {
    const int signal = WTERMSIG(wait_status);
    return {kSignalExitCodeBase + signal, signal};
  }
  return {WEXITSTATUS(wait_status), std::nullopt};
}

}  // namespace joulemap
