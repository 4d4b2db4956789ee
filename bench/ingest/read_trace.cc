// SPDX-License-Identifier: Apache-2.0
//
// Reads traces of PyTorch's profiler like `joulemap import kineto` and prints the cost of each as a line of JSON:
//   bench_read_trace TRACE...
// Peak memory is that of the process, so run one trace at a time to get its own.
#include <fmt/format.h>

#include <chrono>
#include <cstdio>
#include <fstream>
#include <string>

#include "ingest/kineto/kineto_reader.h"

namespace {

// Peak memory of this process. ru_maxrss of getrusage would include the process that started this one.
long peak_bytes() {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with("VmHWM:")) return std::stol(line.substr(6)) * 1024;
  }
  return 0;
}

bool read(const char* path) {
  const auto begin = std::chrono::steady_clock::now();
  const joulemap::Result<joulemap::ingest::Trace> trace = joulemap::ingest::read_kineto(path);
  const std::chrono::duration<double> read_duration = std::chrono::steady_clock::now() - begin;
  if (!trace) {
    fmt::print(stderr, "{}\n", trace.error().message);
    return false;
  }
  std::size_t kept_event_count = 0;
  for (const auto& block : trace->event_blocks) kept_event_count += block.size();
  fmt::print("{{\"seconds\": {:.6f}, \"events\": {}, \"kept\": {}, \"dropped\": {}, \"peak_bytes\": {}}}\n",
             read_duration.count(), trace->read_event_count, kept_event_count, trace->dropped_event_count,
             peak_bytes());
  for (const auto& note : trace->diagnostics.list())
    fmt::print(stderr, "{} {} {}\n", note.code, note.count, note.message);
  return true;
}

}  // namespace

int main(int argc, char** argv) {
  bool has_read_all = argc > 1;
  for (int i = 1; i < argc; ++i) has_read_all = read(argv[i]) && has_read_all;
  return has_read_all ? 0 : 1;
}
