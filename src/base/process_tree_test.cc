// SPDX-License-Identifier: Apache-2.0
#include "base/process_tree.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <set>

#include "support/fake_proc.h"

namespace joulemap {
namespace {

using namespace std::string_literals;

TEST(ProcessParents, ParsesTheParentBehindAnyName) {
  EXPECT_EQ(parse_parent("12 (python) S 7 12 12"), 7);
  EXPECT_EQ(parse_parent("12 (a) S 9 (b)) R 8 1"), 8);
  for (const char* text : {"", "12", "12 (a", "12 (a)", "12 (a) S", "12 (a) S ", "12 (a) S x", "12 (a) S -3 "}) {
    EXPECT_EQ(parse_parent(text), std::nullopt) << text;
  }
}

TEST(ProcessParents, KnowsItsOwnAncestors) {
  EXPECT_EQ(read_parent_pid(::getpid()), ::getppid());
  EXPECT_TRUE(descends_from(::getpid(), ::getpid()));
  EXPECT_TRUE(descends_from(::getpid(), ::getppid()));
  EXPECT_FALSE(descends_from(::getppid(), ::getpid()));
}

TEST(ProcessIdentity, ProcessIdentityIsThePidAndTheStartTime) {
  const std::string stat_text = "7 (a) b) S 1 7 7 0 -1 0 0 0 0 0 1 2 0 0 20 0 1 0 4711 99";
  EXPECT_EQ(parse_start_ticks(stat_text), 4711u);
  EXPECT_EQ(parse_start_ticks("7 (a) S 1 7"), std::nullopt);
  const std::optional<std::uint64_t> own_start_ticks = read_start_ticks(::getpid());
  ASSERT_TRUE(own_start_ticks);
  EXPECT_GE(*own_start_ticks, read_start_ticks(::getppid()).value_or(0));
  EXPECT_EQ(own_pid(), ::getpid());
}

TEST(ProcessIdentity, ListsItsPidsInAllNamespaces) {
  EXPECT_EQ(parse_namespace_pids("Name:\ta\nNSpid:\t4711\t12\t1\nNSpgid:\t9\n"), (NamespacePids{4711, 12, 1, 0}));
  EXPECT_EQ(parse_namespace_pids("Name:\ta\n"), NamespacePids{});
  EXPECT_EQ(namespace_pids_of(::getpid())[0], own_pid());
}

TEST(ForkedChild, AForkedChildIsRecognizedUntilItExecutesAProgram) {
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  const pid_t child = ::fork();
  if (child == 0) {
    char byte = 0;
    ::close(ends[1]);
    ::_exit(::read(ends[0], &byte, 1) == 0 ? 0 : 1);
  }
  EXPECT_TRUE(is_fork_of_parent(child));
  EXPECT_FALSE(is_fork_of_parent(::getpid()));
  ::close(ends[1]);
  ::close(ends[0]);
  ASSERT_EQ(::waitpid(child, nullptr, 0), child);
}

TEST(ProcessEnvironment, MatchesOnlyCompleteEnvironmentVariables) {
  FakeProc proc;
  std::string environment = "ID=1234\0LONG="s;
  environment += std::string(4096 - environment.size() - 3, 'x') + '\0';  // so that the next variable spans two reads
  environment += "RUN=abc\0ID2=12\0"s;
  proc.add(7, {.environment = environment});
  for (const char* complete_assignment : {"ID=1234", "RUN=abc", "ID2=12"})
    EXPECT_TRUE(was_started_with_variable(7, complete_assignment, proc.path())) << complete_assignment;
  for (const char* partial_assignment : {"ID=123", "D=1234", "RUN=ab", "ID2=1", "x", ""})
    EXPECT_FALSE(was_started_with_variable(7, partial_assignment, proc.path())) << partial_assignment;
  EXPECT_FALSE(was_started_with_variable(8, "ID=1234", proc.path()));
}

TEST(OpenFiles, OpenFilesAreFoundByPathPrefixAndSuffix) {
  FakeProc proc;
  proc.add(7, {.files = {"/dev/null", "socket:[1]", "/runs/a.joule.d/part"}});
  EXPECT_EQ(has_open_file(7, "/runs/a.joule.d/", "", proc.path()), true);
  EXPECT_EQ(has_open_file(7, "/runs/a.joule/", "", proc.path()), false);
  EXPECT_EQ(has_open_file(7, "", "/nvidia-uvm", proc.path()), false);
  EXPECT_EQ(has_open_file(8, "", "", proc.path()), std::nullopt);
  const FileDescriptor zero_device(::open("/dev/zero", O_RDONLY));
  EXPECT_EQ(has_open_file(::getpid(), "/dev/", "/zero"), true);
}

TEST(NumberedFolderEntries, ListsAllAndOnlyNumberedFolderEntries) {
  FakeProc proc;
  std::set<int> added_pids;
  for (int pid = 1000; pid < 1500; ++pid) {
    proc.add(pid);
    added_pids.insert(pid);
  }
  std::set<int> listed_pids;
  NumericDirectoryEntries entries(proc.path());
  while (const std::optional<int> pid = entries.next()) listed_pids.insert(*pid);
  EXPECT_EQ(listed_pids, added_pids);
}

TEST(ProcessParents, AnExitedProcessHasNoAncestors) {
  constexpr pid_t kUnattributed = 0x3FFF'FFFF;  // above the largest PID of Linux
  EXPECT_EQ(read_parent_pid(kUnattributed), std::nullopt);
  EXPECT_FALSE(descends_from(kUnattributed, ::getpid()));
  EXPECT_FALSE(descends_from(0, ::getpid()));
}

}  // namespace
}  // namespace joulemap
