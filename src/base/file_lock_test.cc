// SPDX-License-Identifier: Apache-2.0
#include "base/file_lock.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <thread>
#include <vector>

#include "base/process_identity.h"
#include "base/small_file.h"
#include "support/temporary_directory.h"

namespace joulemap {
namespace {

template <int kError>
int fail_flock(int /*fd*/, int /*operation*/) {
  errno = kError;
  return -1;
}

constexpr FileLock::FlockFunction kFlockFailingEnolck = &fail_flock<ENOLCK>;

class FileLockTest : public ::testing::Test {
 protected:
  std::optional<FileLock> try_lock(FileLock::FlockFunction lock, LockScope scope = LockScope::machine) const {
    Result<std::optional<FileLock>> result = FileLock::try_acquire(path_, scope, lock);
    EXPECT_TRUE(result) << result.error().message;
    return result ? std::move(*result) : std::nullopt;
  }

  std::string lock_owner_identity(int number) const {
    const Result<std::string> identity = read_small_file(owner_file_path(path_, number));
    return identity ? *identity : identity.error().message;
  }

  TemporaryDirectory directory_;
  std::string path_ = directory_.path() + "/run.lock";
};

// The identity of an ended process: a reaped child.
std::string make_ended_process_identity() {
  const int pid = ::fork();
  if (pid == 0) ::_exit(0);
  ::waitpid(pid, nullptr, 0);
  const std::string own_identity = this_process_identity();
  const std::string own_pid_field = fmt::format(" {} ", ::getpid());
  const std::size_t pid_position = own_identity.find(own_pid_field);
  return own_identity.substr(0, pid_position) + fmt::format(" {} ", pid) +
         own_identity.substr(pid_position + own_pid_field.size());
}

TEST_F(FileLockTest, OneOwnerHoldsALockAtATime) {
  for (const FileLock::FlockFunction lock : {FileLock::FlockFunction(&::flock), kFlockFailingEnolck}) {
    std::optional<FileLock> first_lock = try_lock(lock);
    ASSERT_TRUE(first_lock);
    EXPECT_FALSE(try_lock(lock));
    first_lock.reset();
    EXPECT_TRUE(try_lock(lock));
  }
}

TEST_F(FileLockTest, WithoutFlockAFileNamesTheOwnerOfTheLock) {
  for (const FileLock::FlockFunction lock : {kFlockFailingEnolck, &fail_flock<EOPNOTSUPP>, &fail_flock<ENOSYS>}) {
    {
      const std::optional<FileLock> held_lock = try_lock(lock);
      ASSERT_TRUE(held_lock);
      EXPECT_TRUE(held_lock->is_backed_by_owner_file());
      EXPECT_EQ(lock_owner_identity(1), this_process_identity());
    }
    EXPECT_FALSE(file_exists(owner_file_path(path_, 1)));
  }
  EXPECT_FALSE(try_lock(&::flock)->is_backed_by_owner_file());
}

TEST_F(FileLockTest, AFlockErrorOtherThanMissingSupportIsReported) {
  const Result<std::optional<FileLock>> result = FileLock::try_acquire(path_, LockScope::machine, &fail_flock<EBADF>);
  ASSERT_FALSE(result);
  EXPECT_NE(result.error().message.find(path_), std::string::npos);
}

TEST_F(FileLockTest, AnOwnerThatHasExitedIsIgnored) {
  directory_.write("owner-1.run.lock", make_ended_process_identity());
  directory_.write("owner-2.run.lock", make_ended_process_identity());
  const std::optional<FileLock> held_lock = try_lock(kFlockFailingEnolck, LockScope::shared);
  ASSERT_TRUE(held_lock);
  EXPECT_EQ(lock_owner_identity(3), this_process_identity());
  EXPECT_FALSE(try_lock(kFlockFailingEnolck, LockScope::shared));
}

TEST_F(FileLockTest, AnEmptyOwnerFileHoldsTheLock) {
  directory_.write("owner-1.run.lock", "");
  EXPECT_FALSE(try_lock(kFlockFailingEnolck));
}

TEST_F(FileLockTest, AnOwnerOfAnotherBootIsIgnoredUnlessMachinesShareTheLock) {
  directory_.write("owner-1.run.lock", "00000000-aaaa-bbbb-cccc-dddddddddddd 1 2 pid:[4026531836]");
  EXPECT_FALSE(try_lock(kFlockFailingEnolck, LockScope::shared));
  EXPECT_TRUE(try_lock(kFlockFailingEnolck, LockScope::machine));
}

TEST_F(FileLockTest, AForkedChildDoesNotReleaseTheLock) {
  const std::optional<FileLock> held_lock = try_lock(kFlockFailingEnolck);
  ASSERT_TRUE(held_lock);
  const int pid = ::fork();
  if (pid == 0) {
    const_cast<std::optional<FileLock>&>(held_lock).reset();
    ::_exit(0);
  }
  ::waitpid(pid, nullptr, 0);
  EXPECT_TRUE(file_exists(owner_file_path(path_, 1)));
}

TEST_F(FileLockTest, ThreadsThatWaitForALockExcludeEachOther) {
  for (const FileLock::FlockFunction lock : {FileLock::FlockFunction(&::flock), kFlockFailingEnolck}) {
    std::atomic<int> owner_count = 0;
    std::atomic<bool> has_overlapped = false;
    std::vector<std::thread> threads;
    for (int i = 0; i < 4; ++i) {
      threads.emplace_back([&] {
        for (int acquisition = 0; acquisition < 5; ++acquisition) {
          const Result<FileLock> held_lock = FileLock::acquire(path_, LockScope::shared, std::chrono::minutes(1), lock);
          ASSERT_TRUE(held_lock) << held_lock.error().message;
          if (owner_count.fetch_add(1) != 0) has_overlapped = true;
          owner_count.fetch_sub(1);
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
    EXPECT_FALSE(has_overlapped);
  }
}

TEST_F(FileLockTest, ALockThatStaysHeldIsAnErrorWithTheFileToRemove) {
  const std::optional<FileLock> held_lock = try_lock(kFlockFailingEnolck);
  const Result<FileLock> second_lock =
      FileLock::acquire(path_, LockScope::shared, std::chrono::milliseconds(0), kFlockFailingEnolck);
  ASSERT_FALSE(second_lock);
  EXPECT_NE(second_lock.error().remedy.find(owner_file_path(path_, 1)), std::string::npos);
}

TEST(ProcessIdentity, DistinguishesRunningExitedAndUnknownProcesses) {
  EXPECT_EQ(owner_process_state(this_process_identity()), OwnerProcessState::running);
  EXPECT_EQ(owner_process_state(make_ended_process_identity()), OwnerProcessState::ended);
  std::string restarted_identity = this_process_identity();  // the same PID with another start time
  restarted_identity.replace(restarted_identity.find(process_start_ticks_text("self")),
                             process_start_ticks_text("self").size(), "1");
  EXPECT_EQ(owner_process_state(restarted_identity), OwnerProcessState::ended);
  for (const char* text : {"", "garbage", "boot 1 2 pid:[1]", "- -1 - -"}) {
    EXPECT_EQ(owner_process_state(text), OwnerProcessState::not_local) << text;
  }
}

}  // namespace
}  // namespace joulemap
