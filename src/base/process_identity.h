// SPDX-License-Identifier: Apache-2.0
//
// Which process a number names. A number is used again after its process has ended; together with the machine's boot, the
// process's start and the namespace that counts it, it is not.
#pragma once

#include <string>
#include <string_view>

namespace joulemap {

// Of this machine, as the kernel made it at boot; "-" where /proc does not show it.
std::string boot_id();

// When a process started, in clock ticks since boot, as text; empty when there is no such process or it is hidden.
std::string process_start(std::string_view pid);

// "boot pid start namespace": this process.
std::string this_process_identity();

enum class OwnerProcess { running, ended, elsewhere };
// Of a process that wrote its identity. `elsewhere`: of another boot, another machine or another namespace, where its
// number has no meaning here; also a text that is no identity.
OwnerProcess state_of_process(std::string_view identity);

}  // namespace joulemap
