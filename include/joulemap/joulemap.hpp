// SPDX-License-Identifier: Apache-2.0
//
// C++17 wrapper of the C interface (joulemap.h): RAII windows and regions. Header only.
//
//   joulemap::Window window("epoch");
//   train();
//   window.end();
//   if (auto joules = window.wait().joules()) std::printf("%.3f J\n", *joules);
//
// A Window has one owner at a time and may move between threads. Failures are returned, not thrown.
#pragma once

#include <joulemap/joulemap.h>

#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace joulemap {

// Result of Window::wait() or Window::peek().
struct Energy {
  jm_energy total{};
  std::vector<jm_domain> domains;
  std::vector<jm_diagnostic> diagnostics;
  std::string error;  // why the call failed; empty if `total` is valid

  // Empty if the energy is unknown; total.reason or error contains the cause.
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

  // Ends the window. Returns false if it has already ended or could not be opened.
  bool end() { return jm_end(window_) == JM_OK; }

  // Ends the window if it is still open, and waits for the next sensor update, at most 0.3 s.
  Energy wait() {
    end();
    return ask(&jm_window_wait);
  }
  // The energy known now, without waiting; of an open window, the energy so far.
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

// Marks a named part of the program in the recording during its lifetime. Must be destroyed on the
// thread that created it.
class Region {
 public:
  explicit Region(const char* name) { jm_region_push(name); }
  ~Region() { jm_region_pop(); }
  Region(const Region&) = delete;
  Region& operator=(const Region&) = delete;
};

}  // namespace joulemap
