// SPDX-License-Identifier: Apache-2.0
#include "base/child_process.h"

#include <gtest/gtest.h>
#include <sys/wait.h>

#include <fstream>

#include "support/temporary_directory.h"

namespace joulemap {
namespace {

sigset_t make_empty_signal_mask() {
  sigset_t mask;
  sigemptyset(&mask);
  return mask;
}

ExitStatus run(const std::vector<std::string>& argv) {
  Result<ChildProcess> child = ChildProcess::prepare(argv, make_empty_signal_mask());
  EXPECT_TRUE(child.has_value());
  EXPECT_TRUE(child->execute().has_value());
  int status = 0;
  EXPECT_EQ(::waitpid(child->pid(), &status, 0), child->pid());
  return ExitStatus::from_wait_status(status);
}

Error expect_start_error(const std::vector<std::string>& argv) {
  Result<ChildProcess> child = ChildProcess::prepare(argv, make_empty_signal_mask());
  EXPECT_TRUE(child.has_value());
  const Status status = child->execute();
  EXPECT_FALSE(status.has_value());
  return status.error();
}

TEST(ChildProcess, PassesOnTheExitCodeOfItsCommand) { EXPECT_EQ(run({"sh", "-c", "exit 7"}).code, 7); }

TEST(ChildProcess, ReportsTheSignalThatKilledItsCommand) {
  const ExitStatus status = run({"sh", "-c", "kill -TERM $$"});
  EXPECT_EQ(status.code, 128 + SIGTERM);
  EXPECT_EQ(status.signal, SIGTERM);
}

TEST(ChildProcess, ReportsACommandThatDoesNotExist) {
  const Error error = expect_start_error({"joulemap-no-such-command"});
  EXPECT_EQ(error.code, ErrorCode::command_not_found);
  EXPECT_NE(error.message.find("joulemap-no-such-command"), std::string::npos);
}

TEST(ChildProcess, ReportsAFileThatIsNotExecutable) {
  const TemporaryDirectory directory;
  const std::string path = directory.write("plain.txt", "no program");
  EXPECT_EQ(expect_start_error({path}).code, ErrorCode::command_not_executable);
  EXPECT_EQ(expect_start_error({path + "/below-a-file"}).code, ErrorCode::command_not_executable);
}

TEST(ChildProcess, RunsNothingBeforeExecuteIsCalled) {
  const TemporaryDirectory directory;
  const std::string output_path = directory.path() + "/ran";
  pid_t pid = 0;
  {
    Result<ChildProcess> child =
        ChildProcess::prepare(std::vector<std::string>{"touch", output_path}, make_empty_signal_mask());
    ASSERT_TRUE(child.has_value());
    pid = child->pid();
  }
  ASSERT_EQ(::waitpid(pid, nullptr, 0), pid);
  EXPECT_FALSE(std::ifstream(output_path).good());
}

}  // namespace
}  // namespace joulemap
