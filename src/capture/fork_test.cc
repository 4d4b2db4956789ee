// SPDX-License-Identifier: Apache-2.0
//
// Tests the capture in the child of a fork. Children report by exit code.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "capture/capture.h"
#include "capture/capture_worker.h"
#include "capture/nvtx_ranges.h"
#include "recording/chunk_file.h"
#include "support/temporary_directory.h"

namespace joulemap::capture {
namespace {

// Forks; returns whether `check` returned true in the child and the child exited normally.
template <class Check>
bool is_true_in_forked_child(Check check) {
  const pid_t child = ::fork();
  if (child == 0) ::_exit(check() ? 0 : 1);
  int status = -1;
  return ::waitpid(child, &status, 0) == child && status == 0;
}

class MarksSink final : public CaptureSink {
 public:
  explicit MarksSink(std::vector<Mark>& marks) : marks_(marks) {}
  void add(Mark mark) override { marks_.push_back(std::move(mark)); }
  void add(Metric) override {}
  void add(EnvironmentFact) override {}
  void add(Activity) override {}
  void add(EngineSteps) override {}
  Status flush() override { return Done{}; }
  Status finish(Diagnostics) override { return Done{}; }

 private:
  std::vector<Mark>& marks_;
};

std::uint64_t add_mark_and_get_thread() {
  std::vector<Mark> marks;
  MarkLog log;
  CaptureWorker worker(std::make_unique<MarksSink>(marks), log);
  log.add_mark(MarkKind::region_begin, 1, "here");
  worker.finish();
  return marks.at(0).thread;
}

// Fixture: a recorded process.
class ForkedCaptureTest : public ::testing::Test {
 protected:
  ForkedCaptureTest() {
    ::setenv("JOULEMAP_RECORDING", folder.path().c_str(), 1);
    ::setenv("JOULEMAP_RECORDING_ID", "0123456789abcdef0123456789abcdef", 1);
  }
  ~ForkedCaptureTest() override {
    Capture::leave_recording();
    ::unsetenv("JOULEMAP_RECORDING");
    ::unsetenv("JOULEMAP_RECORDING_ID");
  }
  std::vector<std::string> parts() const {
    std::vector<std::string> paths;
    for (const auto& part : std::filesystem::directory_iterator(folder.path())) paths.push_back(part.path());
    return paths;
  }

  TemporaryDirectory folder;
};

TEST_F(ForkedCaptureTest, MarksOfAChildHaveItsOwnThread) {
  EXPECT_EQ(add_mark_and_get_thread(), static_cast<std::uint64_t>(::gettid()));
  EXPECT_TRUE(
      is_true_in_forked_child([] { return add_mark_and_get_thread() == static_cast<std::uint64_t>(::gettid()); }));
  EXPECT_TRUE(is_true_in_forked_child([] {
    return is_true_in_forked_child([] { return add_mark_and_get_thread() == static_cast<std::uint64_t>(::gettid()); });
  })) << "a child's child";
}

TEST_F(ForkedCaptureTest, AChildHasItsOwnPartAndNoScopeOfItsParent) {
  ASSERT_TRUE(Capture::join_recording());
  Capture* const parents = Capture::get();
  parents->push_region("of the parent");
  EXPECT_TRUE(is_true_in_forked_child([&] {
    Capture* const child_capture = Capture::get();
    const bool has_no_parent_state = child_capture != nullptr && child_capture != parents &&
                                     child_capture->scope_depth() == 0 && child_capture->current_scope() == 0 &&
                                     !child_capture->pop_region();
    child_capture->finish();
    return has_no_parent_state;
  }));
  EXPECT_EQ(parts().size(), 2u);
  EXPECT_TRUE(parents->pop_region());
}

TEST_F(ForkedCaptureTest, ARangeThatTheParentOpenedEndsNothingInTheChild) {
  ASSERT_TRUE(Capture::join_recording());
  nvtx_push("of the parent");
  EXPECT_TRUE(is_true_in_forked_child([] {
    Capture* const child_capture = Capture::get();
    child_capture->enter(child_capture->find_or_add_child_scope(0, ScopeKind::region, "of the child"));
    nvtx_pop();
    const bool has_unchanged_depth = child_capture->scope_depth() == 1;
    child_capture->finish();
    return has_unchanged_depth;
  }));
  nvtx_pop();
  EXPECT_EQ(Capture::get()->scope_depth(), 0u);
}

// Data loader workers outlive a killed training process for a while; its part must be unlocked nevertheless.
TEST_F(ForkedCaptureTest, ChildrenDoNotLockThePartOfADeadParent) {
  std::array<int, 2> child_exit_pipe{};
  std::array<int, 2> has_forked{};  // fork's child closes inherited descriptors before fork() returns
  ASSERT_EQ(::pipe(child_exit_pipe.data()), 0);
  ASSERT_EQ(::pipe(has_forked.data()), 0);
  EXPECT_TRUE(is_true_in_forked_child([&] {
    if (Capture::get() == nullptr) return false;
    if (::fork() == 0) {
      ::close(child_exit_pipe[1]);
      char pipe_byte = 0;
      if (::write(has_forked[1], &pipe_byte, 1) != 1) ::_exit(1);
      ::_exit(::read(child_exit_pipe[0], &pipe_byte, 1) == 0 ? 0 : 1);
    }
    char ready_byte = 0;
    return ::read(has_forked[0], &ready_byte, 1) == 1;  // then exits without finishing
  }));
  ASSERT_EQ(parts().size(), 1u);
  EXPECT_FALSE(recording::is_being_written(parts()[0]));
  for (const int end : {child_exit_pipe[0], child_exit_pipe[1], has_forked[0], has_forked[1]}) ::close(end);
}

}  // namespace
}  // namespace joulemap::capture
