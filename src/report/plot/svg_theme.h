// SPDX-License-Identifier: Apache-2.0
//
// Colours and sizes of all plots. The palette is that of Okabe and Ito (jfly.uni-koeln.de/color), with purple instead
// of yellow; colour-blind people can distinguish it. The text colours have the contrast that WCAG requires on white.
#pragma once

#include <array>
#include <cstddef>
#include <string_view>

namespace joulemap::report {

inline constexpr std::string_view kTextColour = "#1d2733";
inline constexpr std::string_view kMutedTextColour = "#5b6675";
inline constexpr std::string_view kAxisColour = "#9aa4b1";
inline constexpr std::string_view kGridColour = "#e8ebef";
inline constexpr std::string_view kUnattributedColour = "#b6bec9";  // for idle, unattributed and omitted energy

inline constexpr std::array<std::string_view, 7> kPalette = {"#0072b2", "#d55e00", "#009e73", "#cc79a7",
                                                             "#e69f00", "#56b4e9", "#7a5195"};
constexpr std::string_view palette_colour(std::size_t index) { return kPalette[index % kPalette.size()]; }

// Colour of a phase, the same in every plot.
constexpr std::string_view colour_of_phase(std::string_view phase) {
  if (phase == "forward") return kPalette[0];
  if (phase == "backward") return kPalette[1];
  if (phase == "optimizer") return kPalette[2];
  if (phase == "dataloader" || phase == "data") return kPalette[4];
  if (phase == "loss") return kPalette[3];
  if (phase == "gradients" || phase == "recompute") return kPalette[6];
  if (phase == "probe") return "#8a94a3";
  return kPalette[5];
}

// Colour of the basis of a row (docs/reference/glossary.md).
constexpr std::string_view colour_of_attribution_basis(std::string_view basis) {
  if (basis == "measured" || basis == "regressed") return kPalette[0];
  if (basis == "probed") return kPalette[2];
  if (basis == "library") return kPalette[6];
  if (basis == "cpu-time") return kPalette[4];
  if (basis == "estimated") return kPalette[3];
  return kPalette[5];  // "time-share"
}

inline constexpr double kPlotWidth_px = 960;
inline constexpr double kPlotMargin_px = 28;

}  // namespace joulemap::report
