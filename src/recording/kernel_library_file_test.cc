// SPDX-License-Identifier: Apache-2.0
#include "recording/kernel_library_file.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <optional>
#include <thread>

#include "recording/calibration_file.h"
#include "recording/chunk.h"
#include "recording/kernel_power_library.h"
#include "recording/power_codec.h"
#include "support/recordings.h"
#include "support/temporary_directory.h"

namespace joulemap::recording {
namespace {

KernelPower kernel_power(std::string name, double watts = 400, double time_s = 1) {
  return make_measured_entry("NVIDIA H200", {{KernelKind::kernel, std::move(name), 18}, 132, 256, time_s, 1000}, watts,
                             0.03);
}

TEST(KernelLibraryFile, StoresEntriesForTheNextRun) {
  const TemporaryDirectory directory;
  const std::string path = directory.path() + "/new/folder/library.joule";
  EXPECT_TRUE(load_kernel_library(path)->powers.empty());
  ASSERT_TRUE(add_to_kernel_library(path, {kernel_power("add"), kernel_power("gemm", 700)}));
  ASSERT_TRUE(add_to_kernel_library(path, {kernel_power("add", 410)}));
  const Result<LoadedKernelLibrary> loaded = load_kernel_library(path);
  ASSERT_TRUE(loaded);
  EXPECT_TRUE(loaded->diagnostics.empty());
  ASSERT_EQ(loaded->powers.size(), 2U);
  EXPECT_EQ(loaded->powers[0].recordings, 2U);
  EXPECT_NEAR(loaded->powers[0].watts, 405, 1e-9);
  EXPECT_EQ(loaded->powers[1].kernel_key.name, "gemm");
  EXPECT_NEAR(loaded->powers[1].threads_per_block, 256, 1e-12);
}

TEST(KernelLibraryFile, ConcurrentWritersLoseNothing) {
  const TemporaryDirectory directory;
  const std::string path = directory.path() + "/library.joule";
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 5; ++i)
        EXPECT_TRUE(add_to_kernel_library(path, {kernel_power("own" + std::to_string(t)), kernel_power("shared")}));
    });
  }
  for (std::thread& thread : threads) thread.join();
  const Result<LoadedKernelLibrary> loaded = load_kernel_library(path);
  ASSERT_TRUE(loaded);
  ASSERT_EQ(loaded->powers.size(), 5U);
  for (const KernelPower& library_entry : loaded->powers)
    EXPECT_EQ(library_entry.recordings, library_entry.kernel_key.name == "shared" ? 20U : 5U);
}

TEST(KernelLibraryFile, ReportsAndReplacesADamagedFile) {
  const TemporaryDirectory directory;
  const std::string path = directory.path() + "/library.joule";
  std::ofstream(path) << "not a library";
  EXPECT_FALSE(load_kernel_library(path));
  const Result<Diagnostics> diagnostics = add_to_kernel_library(path, {kernel_power("add")});
  ASSERT_TRUE(diagnostics);
  EXPECT_TRUE(diagnostics->contains("library_damaged"));
  EXPECT_TRUE(std::filesystem::exists(path + ".damaged"));
  EXPECT_EQ(load_kernel_library(path)->powers.size(), 1U);
}

TEST(KernelLibraryFile, PreservesAFileOfANewerVersion) {
  const TemporaryDirectory directory;
  const std::string path = directory.path() + "/library.joule";
  ASSERT_TRUE(add_to_kernel_library(path, {kernel_power("add")}));
  std::string newer_library_bytes = file_bytes(path);
  std::optional<ChunkHeader> header = parse_chunk_header(newer_library_bytes.substr(0, kChunkHeaderSize));
  ASSERT_TRUE(header);
  header->major = kFormatMajor + 1;
  newer_library_bytes.replace(0, kChunkHeaderSize, encode_chunk_header(*header));
  std::ofstream(path, std::ios::binary) << newer_library_bytes;
  EXPECT_FALSE(add_to_kernel_library(path, {kernel_power("add")}));
  EXPECT_FALSE(merge_into_calibration_file(path, {}));
  EXPECT_EQ(file_bytes(path), newer_library_bytes);
}

TEST(KernelLibraryFile, PreservesALink) {
  const TemporaryDirectory directory;
  std::filesystem::create_directory(directory.path() + "/shared");
  const std::string path = directory.path() + "/library.joule";
  std::filesystem::create_symlink("shared/library.joule", path);
  ASSERT_TRUE(add_to_kernel_library(path, {kernel_power("add")}));
  ASSERT_TRUE(add_to_kernel_library(path, {kernel_power("mul")}));
  EXPECT_TRUE(std::filesystem::is_symlink(path));
  EXPECT_EQ(load_kernel_library(directory.path() + "/shared/library.joule")->powers.size(), 2U);
}

TEST(KernelLibraryFile, ReportsAFlippedByte) {
  const TemporaryDirectory directory;
  const std::string path = directory.path() + "/library.joule";
  ASSERT_TRUE(add_to_kernel_library(path, {kernel_power("add")}));
  std::string bytes = file_bytes(path);
  const std::size_t gpu_name_position = bytes.find("NVIDIA");
  ASSERT_NE(gpu_name_position, std::string::npos);
  bytes[gpu_name_position] ^= 1;
  std::ofstream(path, std::ios::binary) << bytes;
  const Result<LoadedKernelLibrary> loaded = load_kernel_library(path);
  ASSERT_TRUE(loaded);
  EXPECT_TRUE(loaded->powers.empty());
  EXPECT_TRUE(loaded->diagnostics.contains("library_damaged"));
}

TEST(KernelLibraryFile, TheLibraryIsBoundedAndReportsDroppedEntries) {
  const TemporaryDirectory directory;
  const std::string path = directory.path() + "/library.joule";
  const Result<Diagnostics> diagnostics =
      add_to_kernel_library(path, {kernel_power("a", 400, 3), kernel_power("b", 400, 1), kernel_power("c", 400, 2)}, 2);
  ASSERT_TRUE(diagnostics);
  EXPECT_TRUE(diagnostics->contains("library_full"));
  const Result<LoadedKernelLibrary> loaded = load_kernel_library(path);
  ASSERT_EQ(loaded->powers.size(), 2U);
  EXPECT_EQ(loaded->powers[1].kernel_key.name, "c");
}

TEST(PowerCodec, RoundTripsManyEntriesInSeveralChunks) {
  std::vector<KernelPower> kernel_powers;
  for (int i = 0; i < 9000; ++i)
    kernel_powers.push_back(kernel_power(std::string(200, 'x') + std::to_string(i), 100 + i));
  std::vector<KernelPower> decoded_powers;
  const std::vector<std::string> payloads = encode_power_payloads(kernel_powers);
  EXPECT_GT(payloads.size(), 1U);
  for (const std::string& payload : payloads) {
    const auto payload_powers = decode_power_payload(payload);
    ASSERT_TRUE(payload_powers);
    decoded_powers.insert(decoded_powers.end(), payload_powers->begin(), payload_powers->end());
  }
  ASSERT_EQ(decoded_powers.size(), kernel_powers.size());
  for (std::size_t i = 0; i < kernel_powers.size(); ++i) {
    EXPECT_EQ(decoded_powers[i].kernel_key, kernel_powers[i].kernel_key);
    EXPECT_EQ(decoded_powers[i].watts, kernel_powers[i].watts);
    EXPECT_EQ(decoded_powers[i].sum_of_squared_precisions, kernel_powers[i].sum_of_squared_precisions);
  }
}

TEST(PowerCodec, OmitsImpossibleEntries) {
  KernelPower invalid_power = kernel_power("bad");
  invalid_power.watts = -5;
  const std::vector<KernelPower> kernel_powers = {kernel_power("good"), invalid_power};
  const auto decoded_powers = decode_power_payload(encode_power_payloads(kernel_powers).front());
  ASSERT_TRUE(decoded_powers);
  ASSERT_EQ(decoded_powers->size(), 1U);
  EXPECT_EQ(decoded_powers->front().kernel_key.name, "good");
  EXPECT_FALSE(decode_power_payload(encode_power_payloads(kernel_powers).front().substr(0, 40)));
}

}  // namespace
}  // namespace joulemap::recording
