// SPDX-License-Identifier: Apache-2.0
//
// joulemap-fork-stress [--forks N] [--seed N]: threads open windows and regions while others fork children that measure,
// exit, call exec or are killed. Every 25 forks begin in a fresh process, so that forks meet first windows, too. It fails
// where a process hangs, with its stack, or ends in another way than it should.
#include <spawn.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>

#include "child_watch.h"
#include "host.h"

extern char** environ;

namespace {

namespace fs = std::filesystem;

constexpr int kForksPerHost = 25;
// Of all its children one after another, of which each may take as long as it may.
constexpr int kHostTimeout_s = 5 * kHangTimeout_s;

constexpr std::string_view kNvmlScript = "device GPU-0\n  counter_spin_us 1000\n";

struct StressSettings {
  int fork_count = 300;
  std::uint64_t seed = 1;
  bool is_host = false;
};

fs::path make_folder() {
  const fs::path parent = fs::is_directory("/dev/shm") ? fs::path("/dev/shm") : fs::temp_directory_path();
  std::string name = parent / "fork-stress-XXXXXX";
  return ::mkdtemp(name.data()) != nullptr ? fs::path(name) : fs::path();
}

// Every other host is recorded, every third has a GPU.
void choose_environment(int host, const fs::path& folder) {
  ::setenv("JOULEMAP_SYSROOT", JOULEMAP_SYSROOTS "/intel-2socket", 1);
  ::setenv("JOULEMAP_NVML", JOULEMAP_FAKE_NVML_LIBRARY, 1);
  ::setenv("JOULEMAP_FAKE_NVML", (folder / "gpus").c_str(), 1);
  ::setenv("JOULEMAP_SENSORS", host % 3 == 0 ? "powercap,nvml" : "powercap", 1);
  ::setenv("JOULEMAP_RECORDING_ID", "0123456789abcdef0123456789abcdef", 1);
  if (host % 2 == 0) {
    ::setenv("JOULEMAP_RECORDING", (folder / "parts").c_str(), 1);
  } else {
    ::unsetenv("JOULEMAP_RECORDING");
  }
}

bool run_hosts(const StressSettings& settings, char* self, const fs::path& folder) {
  std::ofstream(folder / "gpus") << kNvmlScript;
  for (int finished_fork_count = 0, host = 0; finished_fork_count < settings.fork_count;
       finished_fork_count += kForksPerHost, ++host) {
    fs::create_directory(folder / "parts");
    choose_environment(host, folder);
    std::string forks = std::to_string(std::min(kForksPerHost, settings.fork_count - finished_fork_count));
    std::string seed = std::to_string(settings.seed + static_cast<std::uint64_t>(host));
    char* const arguments[] = {self,         const_cast<char*>("--host"), const_cast<char*>("--forks"),
                               forks.data(), const_cast<char*>("--seed"), seed.data(),
                               nullptr};
    pid_t child = -1;
    if (::posix_spawn(&child, "/proc/self/exe", nullptr, nullptr, arguments, environ) != 0) return false;
    if (!wait_for_success(child, "host", false, kHostTimeout_s)) {
      std::fprintf(stderr, "after %d forks; again with: --forks %s --seed %s\n", finished_fork_count, forks.c_str(),
                   seed.c_str());
      return false;
    }
    fs::remove_all(folder / "parts");
  }
  return true;
}

bool parse(int count, char** arguments, StressSettings& settings) {
  for (int i = 1; i < count; ++i) {
    const std::string_view argument = arguments[i];
    if (argument == "--host") {
      settings.is_host = true;
    } else if (argument == "--forks" && i + 1 < count) {
      settings.fork_count = std::atoi(arguments[++i]);
    } else if (argument == "--seed" && i + 1 < count) {
      settings.seed = std::strtoull(arguments[++i], nullptr, 10);
    } else {
      return false;
    }
  }
  return settings.fork_count > 0;
}

}  // namespace

int main(int count, char** arguments) {
  StressSettings settings;
  if (!parse(count, arguments, settings)) {
    std::fprintf(stderr, "usage: %s [--forks N] [--seed N]\n", arguments[0]);
    return 2;
  }
  if (settings.is_host) return run_host(settings.fork_count, settings.seed);
  const fs::path folder = make_folder();
  if (folder.empty()) {
    std::perror("no folder for the recordings");
    return 1;
  }
  const auto begin = std::chrono::steady_clock::now();
  const bool went_well = run_hosts(settings, arguments[0], folder);
  fs::remove_all(folder);
  const std::chrono::duration<double> elapsed_time = std::chrono::steady_clock::now() - begin;
  std::printf("%s: %d forks, seed %llu, %.1f s\n", went_well ? "ok" : "failed", settings.fork_count,
              static_cast<unsigned long long>(settings.seed), elapsed_time.count());
  return went_well ? 0 : 1;
}
