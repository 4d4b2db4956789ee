// SPDX-License-Identifier: Apache-2.0
//
// Measures the time to write scalars for TensorBoard, one event each, like torch's SummaryWriter.
//
//   build/bin/joulemap-write-scalars FILE SCALARS      prints seconds
#include <fmt/format.h>

#include <cstdio>
#include <cstdlib>

#include "base/clock.h"
#include "report/export/tensorboard_events.h"

int main(int argc, char** argv) {
  if (argc != 3) return fmt::print(stderr, "joulemap-write-scalars FILE SCALARS\n"), 2;
  const long scalars = std::strtol(argv[2], nullptr, 10);
  const std::int64_t begin_ns = joulemap::monotonic_ns();
  joulemap::report::TensorboardEvents events(1.79e9);
  for (long i = 0; i < scalars; ++i) {
    const auto elapsed_s = static_cast<double>(i);
    events.add_scalar("bench/energy_j", i, 1.79e9 + elapsed_s, elapsed_s * 0.5);
  }
  std::FILE* const file = std::fopen(argv[1], "wb");
  if (file == nullptr) return fmt::print(stderr, "{} cannot be written\n", argv[1]), 1;
  const bool is_written = std::fwrite(events.bytes().data(), 1, events.bytes().size(), file) == events.bytes().size();
  if (std::fclose(file) != 0 || !is_written) return fmt::print(stderr, "{} cannot be written\n", argv[1]), 1;
  fmt::print("{}\n", joulemap::seconds(joulemap::monotonic_ns() - begin_ns));
  return 0;
}
