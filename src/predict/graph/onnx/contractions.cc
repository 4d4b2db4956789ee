// SPDX-License-Identifier: Apache-2.0
#include "predict/graph/onnx/contractions.h"

#include <algorithm>
#include <array>
#include <optional>
#include <string>

#include "base/text.h"
#include "predict/graph/onnx/program.h"

namespace joulemap::predict::onnx {
namespace {

Error wrong(const char* what) { return {ErrorCode::malformed, what, ""}; }

const Sizes* given(const std::vector<const Sizes*>& inputs, std::size_t position) {
  return position < inputs.size() ? inputs[position] : nullptr;
}

// Sizes of a tensor [batch, heads, tokens, width] or [batch, tokens, heads * width].
struct Heads {
  std::int64_t heads = 0;
  std::int64_t tokens = 0;
  std::int64_t width = 0;
};

std::optional<Heads> heads_of(const Sizes& sizes, std::int64_t heads) {
  if (sizes.size() == 4) return Heads{sizes[1], sizes[2], sizes[3]};
  if (sizes.size() != 3 || heads < 1) return std::nullopt;
  return Heads{heads, sizes[1], sizes[2] / heads};
}

// An operand of an einsum: a letter and a size for each dimension. Dimensions of "..." have the letters 0 to 7, aligned
// at 7 because they broadcast from the last.
struct Term {
  std::string letters;
  Sizes sizes;
};

std::optional<Term> term_of(std::string_view text, const Sizes& sizes) {
  Term term;
  std::string plain;
  const std::size_t dots = text.find("...");
  for (const char letter : text) {
    if (letter != ' ' && letter != '.') plain += letter;
  }
  if (plain.size() > sizes.size() || sizes.size() - plain.size() > 8) return std::nullopt;
  const std::size_t hidden = sizes.size() - plain.size();
  if (hidden > 0 && dots == std::string_view::npos) return std::nullopt;
  std::size_t before = 0;
  for (std::size_t i = 0; i < std::min(dots, text.size()); ++i) before += text[i] != ' ' ? 1 : 0;
  if (hidden == 0) before = 0;
  term.letters = plain.substr(0, before);
  for (std::size_t i = 0; i < hidden; ++i) term.letters += static_cast<char>('0' + (8 - hidden) + i);
  term.letters += plain.substr(before);
  term.sizes = sizes;
  return term;
}

using LetterSizes = std::array<std::int64_t, 128>;

bool contains(const std::string& letters, char letter) { return letters.find(letter) != std::string::npos; }

std::string implied_output(const std::vector<Term>& terms, std::string_view left) {
  std::string output;
  for (char letter = '0'; letter < '8'; ++letter) {
    if (std::any_of(terms.begin(), terms.end(), [=](const Term& term) { return contains(term.letters, letter); })) {
      output += letter;
    }
  }
  for (char letter = 'A'; letter <= 'z'; ++letter) {
    if (std::count(left.begin(), left.end(), letter) == 1) output += letter;
  }
  return output;
}

void count_product(const std::vector<Term>& terms, const std::string& output, const LetterSizes& size_of,
                   Contraction& contraction) {
  if (terms.size() != 2) return;
  Contraction product{.out = {}, .batch = 1, .m = 1, .k = 1, .n = 1};
  std::string seen;
  for (const char letter : terms[0].letters + terms[1].letters) {
    if (contains(seen, letter)) continue;
    seen += letter;
    const bool left = contains(terms[0].letters, letter);
    const bool right = contains(terms[1].letters, letter);
    const bool stays = contains(output, letter);
    if (!stays && !(left && right)) return;  // a letter that is summed over in one operand only: no matrix product
    std::int64_t& part = !stays ? product.k : left && right ? product.batch : left ? product.m : product.n;
    part = product_of({part, size_of[static_cast<unsigned char>(letter)]}, 0, 2);
  }
  product.out = std::move(contraction.out);
  contraction = std::move(product);
}

std::string explicit_output(std::string_view right, const std::vector<Term>& terms) {
  std::string output;
  for (const char letter : implied_output(terms, "")) output += letter;
  const bool has_dots = right.find("...") != std::string_view::npos;
  std::string before;
  std::string after;
  const std::size_t dots = std::min(right.find("..."), right.size());
  for (std::size_t i = 0; i < right.size(); ++i) {
    if (right[i] == ' ' || right[i] == '.') continue;
    (i < dots ? before : after) += right[i];
  }
  return has_dots ? before + output + after : before + after;
}

}  // namespace

Result<AttentionSizes> attention_sizes(const Node& node, const std::vector<const Sizes*>& inputs) {
  const bool of_onnx = node.domain.empty();
  const Sizes* const query = given(inputs, 0);
  const Sizes* const key = given(inputs, 1);
  const Sizes* const value = given(inputs, 2);
  if (query == nullptr || key == nullptr || value == nullptr) return wrong("attention with packed inputs");
  const std::int64_t heads = integer_attribute(node, of_onnx ? "q_num_heads" : "num_heads", 0);
  const std::int64_t key_heads = integer_attribute(node, "kv_num_heads", heads);
  const std::optional<Heads> q = heads_of(*query, heads);
  const std::optional<Heads> k = heads_of(*key, key_heads);
  const std::optional<Heads> v = heads_of(*value, key_heads);
  if (!q || !k || !v) return wrong("attention with incompatible sizes");
  AttentionSizes sizes{.batch = (*query)[0],
                       .heads = q->heads,
                       .queries = q->tokens,
                       .keys = k->tokens,
                       .width = q->width,
                       .value_width = v->width,
                       .key_heads = k->heads};
  const bool grouped = node.type == "GroupQueryAttention";
  const Sizes* const past = given(inputs, grouped ? 3 : of_onnx ? 4 : 6);
  if (past != nullptr && past->size() == 4) sizes.keys = std::min(kMaxElements, sizes.keys + (*past)[2]);
  sizes.causal = grouped || integer_attribute(node, of_onnx ? "is_causal" : "unidirectional", 0) != 0;
  return sizes;
}

Result<AttentionSizes> weighted_attention_sizes(const Node& node, const std::vector<const Sizes*>& inputs) {
  const Sizes* const input = given(inputs, 0);
  const Sizes* const weight = given(inputs, 1);
  const std::int64_t heads = integer_attribute(node, "num_heads", 0);
  if (input == nullptr || weight == nullptr || input->size() != 3 || weight->size() != 2 || heads < 1) {
    return wrong("attention with incompatible sizes");
  }
  const Sizes parts = integers_attribute(node, "qkv_hidden_sizes");
  const std::int64_t query = parts.size() == 3 ? parts[0] : (*weight)[1] / 3;
  const std::int64_t value = parts.size() == 3 ? parts[2] : (*weight)[1] / 3;
  if (query < 0 || value < 0 || std::max(query, value) > (*weight)[1])
    return wrong("attention with incompatible sizes");
  return AttentionSizes{.batch = (*input)[0],
                        .heads = heads,
                        .queries = (*input)[1],
                        .keys = (*input)[1],
                        .width = query / heads,
                        .value_width = value / heads,
                        .key_heads = heads,
                        .causal = integer_attribute(node, "unidirectional", 0) != 0};
}

Result<Contraction> contraction_of(std::string_view equation, const std::vector<const Sizes*>& inputs) {
  const std::size_t arrow = equation.find("->");
  const std::string_view left = equation.substr(0, arrow);
  const std::vector<std::string_view> texts = split(left, ',');
  if (texts.size() != inputs.size() || equation.size() > 256) return wrong("an equation with another number of inputs");
  std::vector<Term> terms;
  LetterSizes size_of{};
  size_of.fill(0);
  for (std::size_t i = 0; i < texts.size(); ++i) {
    const std::optional<Term> term = inputs[i] == nullptr ? std::nullopt : term_of(texts[i], *inputs[i]);
    if (!term) return wrong("an equation that does not match the dimensions of its inputs");
    for (std::size_t position = 0; position < term->letters.size(); ++position) {
      const auto letter = static_cast<unsigned char>(term->letters[position]);
      if (letter >= size_of.size()) return wrong("an equation with an invalid letter");
      size_of[letter] = std::max(size_of[letter], term->sizes[position]);
    }
    terms.push_back(*term);
  }
  const std::string output = arrow == std::string_view::npos ? implied_output(terms, left)
                                                             : explicit_output(equation.substr(arrow + 2), terms);
  Contraction contraction;
  for (const char letter : output) {
    if (static_cast<unsigned char>(letter) >= size_of.size()) return wrong("an equation with an invalid letter");
    contraction.out.push_back(size_of[static_cast<unsigned char>(letter)]);
  }
  count_product(terms, output, size_of, contraction);
  return contraction;
}

}  // namespace joulemap::predict::onnx
