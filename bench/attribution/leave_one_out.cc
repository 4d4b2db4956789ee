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
  std::vector<KernelPower> library_powers;
  for (const KernelPower& kernel_power : library->powers) {
    if (kernel_power.kernel_key != recording::idle_power_key() && kernel_power.gpu == library->powers.front().gpu)
      library_powers.push_back(kernel_power);
  }
  double squares = 0;
  double centered_square_sum = 0;
  int coverage_count = 0;
  double mean = 0;
  for (const KernelPower& kernel_power : library_powers)
    mean += std::log(kernel_power.watts) / static_cast<double>(library_powers.size());
  for (std::size_t i = 0; i < library_powers.size(); ++i) {
    std::vector<KernelPower> other_powers = library_powers;
    other_powers.erase(other_powers.begin() + static_cast<std::ptrdiff_t>(i));
    const ObservedKernels observed_kernels{library_powers[i].kernel_key, library_powers[i].blocks,
                                           library_powers[i].threads_per_block, library_powers[i].mean_kernel_s, 1};
    const attribution::KernelClassPrior prior =
        attribution::KernelPowerHierarchy(other_powers).predict_power(observed_kernels);
    const double log_error = std::log(prior.watts / library_powers[i].watts);
    squares += log_error * log_error;
    centered_square_sum += std::pow(std::log(library_powers[i].watts) - mean, 2);
    const bool holds =
        std::abs(log_error) < 1.645 * add_in_quadrature(prior.relative_sd, 1 / std::sqrt(library_powers[i].precision));
    coverage_count += holds ? 1 : 0;
    fmt::print("{:7.1f} W, its kind says {:7.1f} +- {:2.0f} %{} {:13} {}\n", library_powers[i].watts, prior.watts,
               100 * prior.relative_sd, holds ? " " : "!", attribution::kernel_family(library_powers[i].kernel_key),
               attribution::kernel_name_stem(library_powers[i].kernel_key).substr(0, 70));
  }
  const auto count = static_cast<double>(library_powers.size());
  fmt::print(
      "{} classes: {:.0f} % by kind, {:.0f} % by their mean (RMS of logarithms); 90 % intervals hold in {:.0f} %\n",
      library_powers.size(), 100 * std::sqrt(squares / count), 100 * std::sqrt(centered_square_sum / count),
      100 * coverage_count / count);
  return 0;
}
