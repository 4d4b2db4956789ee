// SPDX-License-Identifier: Apache-2.0
#include "scopes/late_scopes.h"

#include <algorithm>
#include <cmath>

namespace joulemap {

LateScopes::Scope& LateScopes::up_to_date(std::uint32_t scope) {
  if (scope >= scopes_.size()) scopes_.resize(scope + std::size_t{1});
  Scope& found = scopes_[scope];
  if (!found.is_active) {
    found.is_active = true;
    active_.push_back(scope);
  }
  if (found.late_ns > 0) found.charged_ns += static_cast<double>(found.late_ns) * (waits_ - found.waits_seen);
  found.waits_seen = waits_;
  return found;
}

// A program may have a million scopes, of which few are late at a time. Fractions of a nanosecond stay with the scope.
void LateScopes::drop_inactive() {
  std::erase_if(active_, [&](std::uint32_t id) {
    Scope& scope = scopes_[id];
    scope.is_active = scope.late_ns != 0 || scope.charged_ns >= 0.5;
    return !scope.is_active;
  });
}

void LateScopes::change(std::uint32_t scope, std::int64_t by_ns) {
  Scope& found = up_to_date(scope);
  late_ns_ -= std::max(found.late_ns, std::int64_t{0});
  found.late_ns += by_ns;
  late_ns_ += std::max(found.late_ns, std::int64_t{0});
}

void LateScopes::add_host_time(std::uint32_t scope, std::int64_t host_ns) { change(scope, host_ns); }

void LateScopes::add_kernel(std::uint32_t scope, std::int64_t kernel_ns) { change(scope, -kernel_ns); }

bool LateScopes::add_wait(std::int64_t wait_ns) {
  if (late_ns_ <= 0 || late_ns_ < wait_ns) return false;
  waits_ += static_cast<double>(wait_ns) / static_cast<double>(late_ns_);
  return true;
}

void LateScopes::fade() {
  late_ns_ = 0;
  for (const std::uint32_t id : active_) {
    Scope& scope = up_to_date(id);
    scope.late_ns = scope.late_ns * 3 / 4;
    late_ns_ += std::max(scope.late_ns, std::int64_t{0});
  }
  drop_inactive();
}

void LateScopes::begin_anew() {
  for (const std::uint32_t scope : active_) up_to_date(scope).late_ns = 0;
  late_ns_ = 0;
  drop_inactive();
}

std::vector<LateScopes::Charge> LateScopes::take() {
  std::vector<Charge> charges;
  for (const std::uint32_t id : active_) {
    Scope& scope = up_to_date(id);
    const double whole_ns = std::round(scope.charged_ns);  // the rest stays
    if (whole_ns < 1) continue;
    charges.push_back({id, static_cast<std::int64_t>(whole_ns)});
    scope.charged_ns -= whole_ns;
  }
  drop_inactive();
  return charges;
}

}  // namespace joulemap
