// SPDX-License-Identifier: Apache-2.0
//
// Our part of bench/statistics/beside_scipy.py: build/bin/bench_statistics JOB FILE [THREADS]. FILE contains a list of
// numbers on each line. JOB: mean, median (BCa intervals of each line, 10,000 resamples), signed-rank, rank-sum,
// paired-shift (of each line and the next). Prints CPU and wall time in seconds, without reading the file, and then a
// line of results for each.
#include <fmt/format.h>

#include <chrono>
#include <cstdlib>
#include <ctime>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "statistics/bootstrap.h"
#include "statistics/effect_size.h"
#include "statistics/rank_tests.h"

using namespace joulemap::statistics;

namespace {

using NumberLists = std::vector<std::vector<double>>;

NumberLists read_number_lists(const char* path) {
  std::ifstream in(path);
  NumberLists lists;
  for (std::string line; std::getline(in, line);) {
    std::istringstream words(line);
    lists.emplace_back();
    for (double value = 0; words >> value;) lists.back().push_back(value);
  }
  return lists;
}

void add_intervals(const NumberLists& lists, CentralTendency centre, unsigned threads,
                   std::vector<std::vector<double>>& results) {
  for (const auto& interval : bootstrap_cells(lists, centre, {}, threads)) {
    results.push_back({interval->estimate, interval->low, interval->high});
  }
}

std::vector<double> compare_lists(const std::string& job, const std::vector<double>& first_values,
                                  const std::vector<double>& second_values) {
  if (job == "signed-rank") return {signed_rank_test(first_values, second_values, ZeroDifferences::drop).p};
  if (job == "rank-sum") return {rank_sum_test(first_values, second_values).p};
  const EffectEstimate shift = *paired_shift(first_values, second_values, 0.95);
  return {shift.estimate, shift.low, shift.high};
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3) {
    fmt::print(stderr, "usage: bench_statistics mean|median|signed-rank|rank-sum|paired-shift FILE [THREADS]\n");
    return 2;
  }
  const std::string job = argv[1];
  const NumberLists lists = read_number_lists(argv[2]);
  const unsigned threads = argc > 3 ? static_cast<unsigned>(std::strtoul(argv[3], nullptr, 10)) : 0;
  std::vector<std::vector<double>> results;
  const auto begin = std::chrono::steady_clock::now();
  const std::clock_t cpu_begin = std::clock();
  if (job == "mean" || job == "median") {
    add_intervals(lists, job == "mean" ? CentralTendency::mean : CentralTendency::median, threads, results);
  } else {
    for (std::size_t i = 0; i + 1 < lists.size(); i += 2) results.push_back(compare_lists(job, lists[i], lists[i + 1]));
  }
  const double cpu_s = static_cast<double>(std::clock() - cpu_begin) / CLOCKS_PER_SEC;
  const double wall_s = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  fmt::print("{} {}\n", cpu_s, wall_s);
  for (const std::vector<double>& result : results) fmt::print("{}\n", fmt::join(result, " "));
  return 0;
}
