// SPDX-License-Identifier: Apache-2.0
//
// FakeProc: a folder laid out like /proc, with the processes that a test adds.
#pragma once

#include <fmt/format.h>
#include <sys/types.h>

#include <filesystem>
#include <string>
#include <vector>

#include "support/temporary_directory.h"

namespace joulemap {

struct FakeProcess {
  pid_t parent = 1;
  std::string name = "python";
  std::string environment = {};               // "NAME=value\0..."
  std::vector<std::string> files = {};        // open files
  std::vector<pid_t> namespace_numbers = {};  // NSpid; empty: its pid only
  std::uint64_t start_ticks = 100;
  std::uint64_t arguments = 0;    // address of its arguments; unchanged by a fork
  bool are_files_hidden = false;  // like a process of another user
};

class FakeProc {
 public:
  const char* path() const { return folder_.path().c_str(); }

  // Replaces an earlier process of the same pid.
  void add(pid_t pid, const FakeProcess& process = {}) const {
    remove(pid);
    const auto write = [&](const char* name, const std::string& text) {
      folder_.write(fmt::format("{}/{}", pid, name), text);
    };
    std::string stat_text = fmt::format("{} ({}) S {}", pid, process.name, process.parent);
    for (int field = 5; field < 50; ++field)
      stat_text += fmt::format(" {}", field == 22 ? process.start_ticks : field == 48 ? process.arguments : 0);
    write("stat", stat_text + "\n");
    write("comm", process.name.substr(0, 15) + "\n");
    write("environ", process.environment);
    std::string numbers;
    for (const pid_t number : process.namespace_numbers) numbers += fmt::format("\t{}", number);
    if (numbers.empty()) numbers = fmt::format("\t{}", pid);
    write("status", fmt::format("Name:\t{}\nNSpid:{}\n", process.name, numbers));
    if (process.are_files_hidden) return;
    const std::filesystem::path files = std::filesystem::path(folder_.path()) / std::to_string(pid) / "fd";
    std::filesystem::create_directory(files);
    for (std::size_t i = 0; i < process.files.size(); ++i)
      std::filesystem::create_symlink(process.files[i], files / std::to_string(i));
  }

  void remove(pid_t pid) const {
    std::filesystem::remove_all(std::filesystem::path(folder_.path()) / std::to_string(pid));
  }

  // Sets the reading process (/proc/self) and its pid namespace.
  void set_self(pid_t pid, bool is_first_namespace) const {
    const std::filesystem::path folder(folder_.path());
    std::filesystem::create_directory_symlink(std::to_string(pid), folder / "self");
    std::filesystem::create_directory(folder / std::to_string(pid) / "ns");
    std::filesystem::create_symlink(is_first_namespace ? "pid:[4026531836]" : "pid:[4026532001]",
                                    folder / std::to_string(pid) / "ns" / "pid");
  }

 private:
  TemporaryDirectory folder_;
};

}  // namespace joulemap
