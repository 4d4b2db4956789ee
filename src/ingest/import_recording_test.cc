// SPDX-License-Identifier: Apache-2.0
#include "ingest/import_recording.h"

#include <gtest/gtest.h>

#include <random>
#include <string>
#include <vector>

#include "recording/byte_source.h"
#include "recording/chunk_scanner.h"
#include "support/temporary_directory.h"
#include "support/traced_program.h"

namespace joulemap::ingest {
namespace {

// A trace of 4 s: more time slices than ActivityWriter writes in one flush. Correlation ids repeat and are out of
// order.
Trace random_trace(unsigned seed) {
  std::mt19937 random(seed);
  const auto random_below = [&](std::uint32_t limit) { return static_cast<std::uint32_t>(random() % limit); };
  Program program;
  for (std::uint32_t i = 0; i < 4'000; ++i) {
    const std::int64_t start = i * std::int64_t{1'000} + random_below(3'000);
    program.op("op" + std::to_string(random_below(40)), start, random_below(2'000), random_below(200),
               1 + random_below(3));
    if (random_below(50) == 0)
      program.node("Backward" + std::to_string(random_below(9)), start, random_below(2'000), random_below(200), 4);
    if (random_below(400) == 0) program.add(EventKind::annotation, "ProfilerStep#" + std::to_string(i), start, 300'000);
    program.launch(start, 1 + random_below(2'000), 1 + random_below(3));
    program.kernel("kernel" + std::to_string(random_below(30)), start + 10, random_below(900), 1 + random_below(2'000),
                   random_below(5));
  }
  return std::move(program.builder).finish();
}

// Type and content of each chunk; of source chunks only the type, because they contain the id of the recording, which
// differs each time.
std::vector<std::string> chunk_texts_of(const std::string& path) {
  std::vector<std::string> chunks;
  Result<recording::FileSource> file = recording::FileSource::open(path);
  recording::ChunkScanner scanner(*file);
  while (true) {
    const Result<std::optional<recording::ScannedChunk>> chunk = scanner.next();
    if (!chunk || !*chunk) return chunks;
    EXPECT_FALSE(scanner.damaged_range());
    const bool is_source_chunk = (*chunk)->header.has_type(recording::ChunkType::source);
    chunks.push_back(std::to_string((*chunk)->header.type) +
                     (is_source_chunk ? "" : std::string((*chunk)->stored_payload)));
  }
}

std::vector<std::string> import_and_list_chunks(Trace trace, std::size_t threads) {
  const TemporaryDirectory directory;
  ImportOptions options;
  options.output_path = directory.path() + "/run.joule";
  options.thread_count = threads;
  Result<ImportSession> session = ImportSession::begin(options, {});
  EXPECT_TRUE(session->add(std::move(trace), "made"));
  const Result<ImportResult> result = session->finish();
  EXPECT_TRUE(result);
  EXPECT_EQ(result->kernels, 4'000U);
  return chunk_texts_of(options.output_path);
}

TEST(ImportSession, WritesTheSameBytesWhateverTheNumberOfThreads) {
  for (unsigned seed = 0; seed < 5; ++seed) {
    SCOPED_TRACE(seed);
    const std::vector<std::string> single_thread_chunks = import_and_list_chunks(random_trace(seed), 1);
    EXPECT_GT(single_thread_chunks.size(), 500U);
    for (const std::size_t threads : {2, 2, 4})
      EXPECT_TRUE(import_and_list_chunks(random_trace(seed), threads) == single_thread_chunks);
  }
}

}  // namespace
}  // namespace joulemap::ingest
