// SPDX-License-Identifier: Apache-2.0
#include "sensors/counter_file.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <string>
#include <thread>

#include "support/temporary_directory.h"

namespace joulemap::sensors {
namespace {

TEST(CounterFile, ReadsANumberWithBlanksAroundIt) {
  const TemporaryDirectory directory;
  for (const char* text : {"1234567\n", "1234567", "1234567     \n", "  1234567 \n\n"}) {
    Result<CounterFile> file = open_counter_file(directory.write("energy_uj", text));
    ASSERT_TRUE(file.has_value()) << text;
    const Reading reading = file->read();
    EXPECT_EQ(reading.code, ReadCode::ok);
    EXPECT_EQ(reading.raw, 1234567u);
    EXPECT_LE(reading.before_ns, reading.after_ns);
  }
}

TEST(CounterFile, ReadsChangesWithoutReopening) {
  const TemporaryDirectory directory;
  Result<CounterFile> file = open_counter_file(directory.write("energy_uj", "100\n"));
  ASSERT_TRUE(file.has_value());
  directory.write("energy_uj", "250\n");
  EXPECT_EQ(file->read().raw, 250u);
}

TEST(CounterFile, FollowsAFileThatIsReplacedUnderItsName) {
  const TemporaryDirectory directory;
  const std::string path = directory.write("energy_uj", "100\n");
  Result<CounterFile> file = open_counter_file(path);
  ASSERT_TRUE(file.has_value());
  ASSERT_EQ(std::rename(directory.write("next", "300\n").c_str(), path.c_str()), 0);
  const Reading reading = file->read();
  EXPECT_EQ(reading.code, ReadCode::ok);
  EXPECT_EQ(reading.raw, 300u);
}

TEST(CounterFile, ReportsAVanishedFileInsteadOfTheOldValue) {
  const TemporaryDirectory directory;
  const std::string path = directory.write("energy_uj", "100\n");
  Result<CounterFile> file = open_counter_file(path);
  ASSERT_TRUE(file.has_value());
  ::unlink(path.c_str());
  EXPECT_EQ(file->read().code, ReadCode::vanished);
}

TEST(CounterFile, KeepsReadingWhenPermissionIsRevokedWhileOpen) {
  const TemporaryDirectory directory;
  const std::string path = directory.write("energy_uj", "100\n");
  Result<CounterFile> file = open_counter_file(path);
  ASSERT_TRUE(file.has_value());
  ::chmod(path.c_str(), 0);
  EXPECT_EQ(file->read().code, ReadCode::ok);
}

TEST(CounterFile, ReportsTextThatIsNoNumberAndRecovers) {
  const TemporaryDirectory directory;
  Result<CounterFile> file = open_counter_file(directory.write("energy_uj", "100\n"));
  ASSERT_TRUE(file.has_value());
  for (const char* text : {"", "\n", "12x\n", "-5\n", "1 2\n", "99999999999999999999999\n"}) {
    directory.write("energy_uj", text);
    EXPECT_EQ(file->read().code, ReadCode::garbage) << text;
  }
  directory.write("energy_uj", "700\n");
  EXPECT_EQ(file->read().raw, 700u);
}

TEST(CounterFile, NamesThePathAndTheTextWhenItIsNoCounter) {
  const TemporaryDirectory directory;
  const std::string path = directory.write("energy_uj", "N/A\n");
  const Result<CounterFile> file = open_counter_file(path);
  ASSERT_FALSE(file.has_value());
  EXPECT_NE(file.error().message.find(path), std::string::npos);
  EXPECT_NE(file.error().message.find("N/A"), std::string::npos);
  EXPECT_FALSE(open_counter_file(directory.path()).has_value());
  EXPECT_FALSE(open_counter_file(directory.path() + "/missing").has_value());
}

// A writer truncates and writes as fast as it can: each read returns a written value or an error code.
TEST(CounterFile, NeverAcceptsHalfWrittenText) {
  const TemporaryDirectory directory;
  const std::string path = directory.write("energy_uj", "111111111111\n");
  Result<CounterFile> file = open_counter_file(path);
  ASSERT_TRUE(file.has_value());
  std::atomic<bool> is_stop_requested = false;
  std::thread writer([&] {
    const FileDescriptor fd(::open(path.c_str(), O_WRONLY));
    for (unsigned i = 0; !is_stop_requested; ++i) {
      const std::string text(12, static_cast<char>('1' + i % 9));
      if (i % 3 == 0) static_cast<void>(::ftruncate(fd.get(), 0) + 0);
      static_cast<void>(::pwrite(fd.get(), (text + "\n").data(), 13, 0) + 0);
    }
  });
  int valid_reading_count = 0;
  for (int i = 0; i < 3000; ++i) {
    const Reading reading = file->read();
    if (reading.code != ReadCode::ok) continue;
    ++valid_reading_count;
    EXPECT_EQ(reading.raw % 111111111111u, 0u) << reading.raw;
  }
  is_stop_requested = true;
  writer.join();
  EXPECT_GT(valid_reading_count, 0);
}

}  // namespace
}  // namespace joulemap::sensors
