// SPDX-License-Identifier: Apache-2.0
//
// Leave-one-out test of a kernel library: predicts the power of each class from the other classes by kind.
//
//   build/bin/leave_one_out LIBRARY
#include <fmt/format.h>

#include <cmath>

#include "attribution/gpu/kernel_power_hierarchy.h"
#include "base/quadrature.h"
#include "recording/kernel_library_file.h"
#include "recording/kernel_power_library.h"

int main(int argc, char** argv) {
  using namespace joulemap;
  if (argc != 2) return fmt::print(stderr, "usage: leave_one_out LIBRARY\n"), 2;
  const Result<recording::LoadedKernelLibrary> library = recording::load_kernel_library(argv[1]);
  if (!library) return fmt::print(stderr, "{}\n", library.error().message), 1;
  std::vector<KernelPower> known;
  for (const KernelPower& one : library->powers) {
    if (one.kernel_key != recording::idle_power_key() && one.gpu == library->powers.front().gpu) known.push_back(one);
  }
  double squares = 0;
  double plain = 0;
  int inside = 0;
  double mean = 0;
  for (const KernelPower& one : known) mean += std::log(one.watts) / static_cast<double>(known.size());
  for (std::size_t i = 0; i < known.size(); ++i) {
    std::vector<KernelPower> others = known;
    others.erase(others.begin() + static_cast<std::ptrdiff_t>(i));
    const ObservedKernels seen{known[i].kernel_key, known[i].blocks, known[i].threads_per_block, known[i].mean_kernel_s,
                               1};
    const attribution::KernelClassPrior prior = attribution::KernelPowerHierarchy(others).predict_power(seen);
    const double log_error = std::log(prior.watts / known[i].watts);
    squares += log_error * log_error;
    plain += std::pow(std::log(known[i].watts) - mean, 2);
    const bool holds =
        std::abs(log_error) < 1.645 * add_in_quadrature(prior.relative_sd, 1 / std::sqrt(known[i].precision));
    inside += holds ? 1 : 0;
    fmt::print("{:7.1f} W, its kind says {:7.1f} +- {:2.0f} %{} {:13} {}\n", known[i].watts, prior.watts,
               100 * prior.relative_sd, holds ? " " : "!", attribution::kernel_family(known[i].kernel_key),
               attribution::kernel_name_stem(known[i].kernel_key).substr(0, 70));
  }
  const auto count = static_cast<double>(known.size());
  fmt::print(
      "{} classes: {:.0f} % by kind, {:.0f} % by their mean (RMS of logarithms); 90 % intervals hold in {:.0f} %\n",
      known.size(), 100 * std::sqrt(squares / count), 100 * std::sqrt(plain / count), 100 * inside / count);
  return 0;
}
