// SPDX-License-Identifier: Apache-2.0
//
// The C interface (joulemap.h) for C++17 programs: windows and regions that end with their scope. Header only.
//
//   joulemap::Window window("epoch");
//   train();
//   window.end();
//   if (auto joules = window.wait().joules()) std::printf("%.3f J\n", *joules);
//
// A Window has one owner at a time and may be handed from thread to thread. Nothing here throws.
#pragma once

#include <joulemap/joulemap.h>

#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace joulemap {

// What a window used, as far as it is known.
struct Energy {
  jm_energy total{};
  std::vector<jm_domain> domains;
  std::vector<jm_diagnostic> diagnostics;
  std::string error;  // why nothing could be asked for; empty when `total` holds

  // Nothing where it is unknown; total.reason or error say why.
  std::optional<double> joules() const {
    if (!error.empty() || total.provenance == JM_UNKNOWN) return std::nullopt;
    return total.joules;
  }
};

class Window {
 public:
  explicit Window(const char* name) : window_(jm_begin(name)) {}
  ~Window() { jm_window_free(window_); }
  Window(Window&& other) noexcept : window_(std::exchange(other.window_, 0)) {}
  Window& operator=(Window&& other) noexcept {
    std::swap(window_, other.window_);
    return *this;
  }

  // Once; again is an error of usage, and harmless.
  bool end() { return jm_end(window_) == JM_OK; }

  // Ends the window where it is still open, and waits for the sensors' next refresh.
  Energy wait() {
    end();
    return ask(&jm_window_wait);
  }
  // What is known now.
  Energy peek() const { return ask(&jm_window_peek); }

 private:
  Energy ask(int (*question)(jm_window, jm_energy*)) const {
    Energy energy;
    energy.total.size = sizeof energy.total;
    if (question(window_, &energy.total) != JM_OK) {
      energy.error = jm_last_error();
      return energy;
    }
    for (size_t i = 0; i < energy.total.domains; ++i) {
      jm_domain domain{};
      domain.size = sizeof domain;
      if (jm_window_domain(i, &domain) == JM_OK) energy.domains.push_back(domain);
    }
    for (size_t i = 0; i < energy.total.diagnostics; ++i) {
      jm_diagnostic diagnostic{};
      diagnostic.size = sizeof diagnostic;
      if (jm_window_diagnostic(i, &diagnostic) == JM_OK) energy.diagnostics.push_back(diagnostic);
    }
    return energy;
  }

  jm_window window_;
};

// A named part of the program in the recording, as long as it lives. On one thread.
class Region {
 public:
  explicit Region(const char* name) { jm_region_push(name); }
  ~Region() { jm_region_pop(); }
  Region(const Region&) = delete;
  Region& operator=(const Region&) = delete;
};

}  // namespace joulemap
