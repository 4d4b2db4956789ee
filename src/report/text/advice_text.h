// SPDX-License-Identifier: Apache-2.0
//
// Text of `joulemap advise`: findings with their expected savings. Pure; fits the given width.
#pragma once

#include <string>

#include "model/advice.h"
#include "report/text/text_style.h"

namespace joulemap::report {

// "saves about 12 % of a steady-state step: 0.4 J and 1.2 ms". Needs advice.energy_j.
std::string finding_saving_text(const Finding& finding, const Advice& advice);
// Whether no finding is about the work of layers. False for GPUs, where findings about kernels concern layers, too.
bool has_no_waste_in_layers(const Advice& advice);
std::string advice_text(const Advice& advice, const TextStyle& style);

}  // namespace joulemap::report
