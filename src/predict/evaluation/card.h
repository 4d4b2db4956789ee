// SPDX-License-Identifier: Apache-2.0
//
// The card of an operation: what a call of it takes and draws by size, precision and pass, and what follows from that for
// who writes networks. As the documentation of a framework could have it. Pure; from the model of a profile, with its
// data found in the cache where they fit.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "predict/graph/operation.h"
#include "predict/model/explanation.h"
#include "predict/model/profile.h"

namespace joulemap::predict {

// What a name of PyTorch, Keras, ONNX or of operation.h stands for.
struct CardSubject {
  std::string name;  // as it was asked for
  Kind kind = Kind::unknown;
  std::string form;
  std::string variant;  // "depthwise" and "1d" of convolutions
};

// "torch.nn.Conv2d", "F.relu", "keras.layers.Dense", "Gemm", "convolution". An Error names those that are near.
Result<CardSubject> card_subject(std::string_view name);

struct CardSize {
  std::string text;  // "4096 x 1024 -> 1024"
  Parameters parameters;
  bool is_odd = false;  // the one before with sizes that are no multiples of 8
};
// From small to large, the odd one last; within what was measured.
std::vector<CardSize> card_sizes(const CardSubject& subject);

struct CardRow {
  std::string size;
  bool is_odd = false;
  Operation operation;
  double time_s = 0;
  double energy_j = 0;
  double flops = 0;
  double bytes = 0;
  Bound bound = Bound::launch;
  double trust = 0;
};

struct Card {
  CardSubject subject;
  std::string device;
  bool fitted = true;
  bool is_measured = true;          // else by physics alone: no operation of the kind was measured
  std::vector<CardRow> rows;        // by size, precision, pass
  std::vector<std::string> advice;  // sentences with numbers of the rows
};

Card make_card(const Profile& profile, const CardSubject& subject);

// Sentences for the reader of a card, from its rows alone.
std::vector<std::string> card_advice(std::span<const CardRow> rows);

}  // namespace joulemap::predict
