// SPDX-License-Identifier: Apache-2.0
#include "capture/cupti/cupti_search.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace joulemap::capture::cupti {
namespace {

std::vector<std::string> find_cupti_candidates(std::vector<std::string> loaded_libraries, int driver_major = 13) {
  CuptiSearchInputs search;
  search.loaded_libraries = std::move(loaded_libraries);
  search.driver_major = driver_major;
  return cupti_candidates(search);
}

// Index of `path` in the list; the list's size when it is missing.
std::size_t rank(const std::vector<std::string>& candidates, std::string_view path) {
  return static_cast<std::size_t>(std::find(candidates.begin(), candidates.end(), path) - candidates.begin());
}

TEST(CuptiSearchInputs, ANamedLibraryIsTheOnlyCandidate) {
  CuptiSearchInputs search;
  search.requested_path = "/some/libcupti.so";
  search.loaded_libraries = {"/x/libcupti.so.12"};
  EXPECT_EQ(cupti_candidates(search), std::vector<std::string>{"/some/libcupti.so"});
}

TEST(CuptiSearchInputs, ALoadedLibraryComesFirst) {
  EXPECT_EQ(find_cupti_candidates(
                {"/lib/libc.so.6", "/v/torch/lib/libcudart.so.12", "/v/nvidia/cuda_cupti/lib/libcupti.so.12"})[0],
            "/v/nvidia/cuda_cupti/lib/libcupti.so.12");
  EXPECT_EQ(find_cupti_candidates({"/v/torch/lib/libcupti-8b5a5a1c.so.12"})[0], "/v/torch/lib/libcupti-8b5a5a1c.so.12");
}

TEST(CuptiSearchInputs, SearchesTheWheelsOfTheFramework) {
  const auto candidates = find_cupti_candidates({"/v/site-packages/torch/lib/libtorch_cuda.so"});
  const std::size_t wheel = rank(candidates, "/v/site-packages/nvidia/cuda_cupti/lib/libcupti.so.12");
  EXPECT_LT(wheel, rank(candidates, "libcupti.so.12"));
  EXPECT_LT(rank(candidates, "/v/site-packages/nvidia/cu13/lib/libcupti.so.13"), candidates.size());
  const auto runtime_candidates = find_cupti_candidates({"/v/nvidia/cuda_runtime/lib/libcudart.so.12"});
  EXPECT_LT(rank(runtime_candidates, "/v/nvidia/cuda_cupti/lib/libcupti.so.12"),
            rank(runtime_candidates, "libcupti.so.13"));
}

TEST(CuptiSearchInputs, SearchesTheToolkitLast) {
  const auto candidates = find_cupti_candidates({});
  EXPECT_EQ(candidates[0], "libcupti.so.13");
  EXPECT_LT(rank(candidates, "/usr/local/cuda/extras/CUPTI/lib64/libcupti.so.12"), candidates.size());
}

TEST(CuptiSearchInputs, ExcludesLibrariesNewerThanTheDriver) {
  const auto candidates = find_cupti_candidates({"/v/site-packages/torch/lib/libtorch_cuda.so"}, 12);
  EXPECT_TRUE(std::none_of(candidates.begin(), candidates.end(),
                           [](const std::string& path) { return path.find(".so.13") != path.npos; }));
  EXPECT_LT(rank(candidates, "libcupti.so.11"), candidates.size());
}

TEST(CuptiSearchInputs, ATestProgramHasNoDriver) {
  const CuptiSearchInputs search = CuptiSearchInputs::read_from_process();
  EXPECT_FALSE(search.loaded_libraries.empty());
}

}  // namespace
}  // namespace joulemap::capture::cupti
