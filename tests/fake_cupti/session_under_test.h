// SPDX-License-Identifier: Apache-2.0
//
// Shared by tests of the CUPTI session: a sink that stores what it receives, and a session over the fake library.
#pragma once

#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "capture/cupti/cupti_session.h"
#include "fake_cupti/fake_cupti.h"

namespace joulemap::capture::cupti {

inline constexpr std::uint32_t kCuda130 = 130'001;

class ReceivedEvents final : public KernelSink {
 public:
  struct LaunchScope {
    std::uint32_t scope;
    std::uint32_t step;
  };
  struct KernelRecord {
    std::string name;
    KernelActivityRecord facts;  // without its name, which was borrowed
  };

  void on_launch(std::uint32_t correlation, std::uint32_t scope, std::uint32_t step) noexcept override {
    const std::lock_guard hold(lock_);
    launches[correlation] = {scope, step};
  }
  void on_synchronization(std::uint32_t scope, bool begins) override { synchronizations.push_back({scope, begins}); }
  void on_graph_node(std::uint64_t node, std::uint32_t scope) override { nodes[node] = scope; }
  void on_graph_node_copied(std::uint64_t original_node, std::uint64_t copy) override { copies[copy] = original_node; }
  void set_device(std::uint32_t ordinal, std::string uuid) override {
    const std::lock_guard hold(lock_);
    devices.emplace_back(ordinal, std::move(uuid));
  }
  void on_records_lost(std::int64_t since_ns, std::int64_t until_ns) override {
    loss_spans_ns.emplace_back(since_ns, until_ns);
  }
  void on_kernel(const KernelActivityRecord& kernel_record) override {
    const std::lock_guard hold(lock_);
    kernels.push_back({std::string(kernel_record.name), kernel_record});
  }

  std::map<std::uint32_t, LaunchScope> launches;                 // by correlation
  std::vector<std::pair<std::uint32_t, bool>> synchronizations;  // scope, begins
  std::map<std::uint64_t, std::uint32_t> nodes;
  std::map<std::uint64_t, std::uint64_t> copies;
  std::vector<std::pair<std::uint32_t, std::string>> devices;
  std::vector<KernelRecord> kernels;
  std::vector<std::pair<std::int64_t, std::int64_t>> loss_spans_ns;

 private:
  std::mutex lock_;
};

// Scope and step of the test's threads.
inline thread_local std::uint32_t current_scope = 0;
inline thread_local std::uint32_t current_step = 0;

inline Result<CuptiApi> open_fake_cupti(const char* path) {
  CuptiSearchInputs search;
  search.requested_path = path;
  return CuptiApi::open(search);
}

class SessionUnderTest : public ::testing::Test {
 protected:
  static constexpr std::chrono::milliseconds kFinishTimeout{500};
  static constexpr LaunchContext kLaunchContext{[]() noexcept { return current_scope; },
                                                []() noexcept { return current_step; }};

  explicit SessionUnderTest(const char* path = JOULEMAP_FAKE_CUPTI_LIBRARY, std::uint32_t version = kCuda130)
      : path_(path), fake(fake_cupti::load_fake_cupti(path)) {
    fake.reset(version);
    current_scope = 0;
    current_step = 0;
  }

  ~SessionUnderTest() override {
    fake.set_flush_hang(false);
    session_.reset();
    fake.reset(kCuda130);  // while the sink still exists
  }

  CuptiSession& session() {
    if (!session_) {
      Result<CuptiApi> api = open_fake_cupti(path_);
      EXPECT_TRUE(api.has_value());
      session_ = std::make_unique<CuptiSession>(*std::move(api), received, kLaunchContext, kFinishTimeout);
    }
    return *session_;
  }
  void start() {
    const Status start_status = session().start();
    ASSERT_TRUE(start_status.has_value()) << start_status.error().message;
  }
  // Polls once a second for that many seconds, on the test's own clock.
  void poll_for(int seconds) {
    for (int i = 0; i < seconds; ++i) session().poll(now_ns += kNanosecondsPerSecond);
  }
  std::string find_diagnostic_message(const std::string& code) {
    const Diagnostics all_diagnostics = session().diagnostics();
    for (const Diagnostic& diagnostic : all_diagnostics.list()) {
      if (diagnostic.code == code) return diagnostic.message;
    }
    return "";
  }

 private:
  const char* path_;

 protected:
  const fake_cupti::FakeCupti& fake;
  ReceivedEvents received;
  std::int64_t now_ns = monotonic_ns();

 private:
  std::unique_ptr<CuptiSession> session_;
};

}  // namespace joulemap::capture::cupti
