// SPDX-License-Identifier: Apache-2.0
#include "scopes/late_scopes.h"

#include <algorithm>
#include <cmath>

namespace joulemap {

void LateScopes::change(std::uint32_t scope, std::int64_t by_ns) {
  if (scope >= scopes_.size()) scopes_.resize(scope + std::size_t{1});
  Scope& found = scopes_[scope];
  found.since_wait_ns += by_ns;
  if (!found.is_active) active_.push_back(scope);
  if (!found.is_changed) changed_.push_back(scope);
  found.is_active = found.is_changed = true;
}

bool LateScopes::add_wait(std::int64_t wait_ns) {
  for (const std::uint32_t id : changed_) {
    Scope& scope = scopes_[id];
    late_ns_ -= std::max(scope.until_wait_ns, std::int64_t{0});
    scope.until_wait_ns += scope.since_wait_ns;
    late_ns_ += std::max(scope.until_wait_ns, std::int64_t{0});
    scope.since_wait_ns = 0;
    scope.is_changed = false;
  }
  changed_.clear();
  if (waited_ns_ + wait_ns > late_ns_) return false;
  waited_ns_ += wait_ns;
  return true;
}

void LateScopes::divide_waits() {
  for (const std::uint32_t id : active_) {
    Scope& scope = scopes_[id];
    if (waited_ns_ > 0 && scope.until_wait_ns > 0) {
      const double share = static_cast<double>(scope.until_wait_ns) / static_cast<double>(late_ns_);
      scope.charged_ns += share * static_cast<double>(waited_ns_);
    }
    scope.until_wait_ns = 0;
  }
  late_ns_ = waited_ns_ = 0;
}

void LateScopes::end_period() {
  divide_waits();
  for (const std::uint32_t id : changed_) scopes_[id].since_wait_ns /= 2;
  drop_inactive();
}

void LateScopes::begin_anew() {
  divide_waits();
  for (const std::uint32_t id : changed_) {
    scopes_[id].since_wait_ns = 0;
    scopes_[id].is_changed = false;
  }
  changed_.clear();
  drop_inactive();
}

// Removes ids from the lists, because a program may have a million scopes, of which few are late at a time. Less than
// half a nanosecond of charge stays with the scope.
void LateScopes::drop_inactive() {
  std::erase_if(changed_, [&](std::uint32_t id) {
    scopes_[id].is_changed = scopes_[id].since_wait_ns != 0;
    return !scopes_[id].is_changed;
  });
  std::erase_if(active_, [&](std::uint32_t id) {
    Scope& scope = scopes_[id];
    scope.is_active = scope.is_changed || scope.charged_ns >= 0.5;
    return !scope.is_active;
  });
}

std::vector<LateScopes::Charge> LateScopes::take() {
  end_period();
  std::vector<Charge> charges;
  for (const std::uint32_t id : active_) {
    const double whole_ns = std::round(scopes_[id].charged_ns);  // the fraction stays with the scope
    if (whole_ns < 1) continue;
    charges.push_back({id, static_cast<std::int64_t>(whole_ns)});
    scopes_[id].charged_ns -= whole_ns;
  }
  drop_inactive();
  return charges;
}

}  // namespace joulemap
