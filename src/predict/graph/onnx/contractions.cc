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

Error malformed_error(const char* error_message) { return {ErrorCode::malformed, error_message, ""}; }

const Sizes* find_input_sizes(const std::vector<const Sizes*>& inputs, std::size_t position) {
  return position < inputs.size() ? inputs[position] : nullptr;
}

// Sizes of a tensor [batch, heads, tokens, width] or [batch, tokens, heads * width].
struct HeadSizes {
  std::int64_t head_count = 0;
  std::int64_t token_count = 0;
  std::int64_t width_per_head = 0;
};

std::optional<HeadSizes> split_into_heads(const Sizes& sizes, std::int64_t heads) {
  if (sizes.size() == 4) return HeadSizes{sizes[1], sizes[2], sizes[3]};
  if (sizes.size() != 3 || heads < 1) return std::nullopt;
  return HeadSizes{heads, sizes[1], sizes[2] / heads};
}

// An operand of an einsum: a letter and a size for each dimension. Dimensions of "..." have the letters 0 to 7, aligned
// at 7 because they broadcast from the last.
struct EinsumTerm {
  std::string letters;
  Sizes sizes;
};

std::optional<EinsumTerm> parse_einsum_term(std::string_view text, const Sizes& sizes) {
  EinsumTerm term;
  std::string explicit_letters;
  const std::size_t dots_position = text.find("...");
  for (const char letter : text) {
    if (letter != ' ' && letter != '.') explicit_letters += letter;
  }
  if (explicit_letters.size() > sizes.size() || sizes.size() - explicit_letters.size() > 8) return std::nullopt;
  const std::size_t hidden_dimension_count = sizes.size() - explicit_letters.size();
  if (hidden_dimension_count > 0 && dots_position == std::string_view::npos) return std::nullopt;
  std::size_t leading_letter_count = 0;
  for (std::size_t i = 0; i < std::min(dots_position, text.size()); ++i) leading_letter_count += text[i] != ' ' ? 1 : 0;
  if (hidden_dimension_count == 0) leading_letter_count = 0;
  term.letters = explicit_letters.substr(0, leading_letter_count);
  for (std::size_t i = 0; i < hidden_dimension_count; ++i)
    term.letters += static_cast<char>('0' + (8 - hidden_dimension_count) + i);
  term.letters += explicit_letters.substr(leading_letter_count);
  term.sizes = sizes;
  return term;
}

using LetterSizes = std::array<std::int64_t, 128>;

bool contains_letter(const std::string& letters, char letter) { return letters.find(letter) != std::string::npos; }

std::string implied_output_letters(const std::vector<EinsumTerm>& terms, std::string_view operands_text) {
  std::string output;
  for (char letter = '0'; letter < '8'; ++letter) {
    if (std::any_of(terms.begin(), terms.end(),
                    [=](const EinsumTerm& term) { return contains_letter(term.letters, letter); })) {
      output += letter;
    }
  }
  for (char letter = 'A'; letter <= 'z'; ++letter) {
    if (std::count(operands_text.begin(), operands_text.end(), letter) == 1) output += letter;
  }
  return output;
}

void set_product_sizes(const std::vector<EinsumTerm>& terms, const std::string& output,
                       const LetterSizes& size_by_letter, Contraction& contraction) {
  if (terms.size() != 2) return;
  Contraction product{.output_sizes = {}, .batch_count = 1, .m = 1, .k = 1, .n = 1};
  std::string visited_letters;
  for (const char letter : terms[0].letters + terms[1].letters) {
    if (contains_letter(visited_letters, letter)) continue;
    visited_letters += letter;
    const bool is_left_letter = contains_letter(terms[0].letters, letter);
    const bool is_right_letter = contains_letter(terms[1].letters, letter);
    const bool is_output_letter = contains_letter(output, letter);
    if (!is_output_letter && !(is_left_letter && is_right_letter))
      return;  // a letter that is summed over in one operand only: no matrix product
    std::int64_t& part = !is_output_letter                   ? product.k
                         : is_left_letter && is_right_letter ? product.batch_count
                         : is_left_letter                    ? product.m
                                                             : product.n;
    part = product_of_sizes({part, size_by_letter[static_cast<unsigned char>(letter)]}, 0, 2);
  }
  product.output_sizes = std::move(contraction.output_sizes);
  contraction = std::move(product);
}

std::string parse_explicit_output(std::string_view output_text, const std::vector<EinsumTerm>& terms) {
  std::string output;
  for (const char letter : implied_output_letters(terms, "")) output += letter;
  const bool has_ellipsis = output_text.find("...") != std::string_view::npos;
  std::string leading_letters;
  std::string trailing_letters;
  const std::size_t dots_position = std::min(output_text.find("..."), output_text.size());
  for (std::size_t i = 0; i < output_text.size(); ++i) {
    if (output_text[i] == ' ' || output_text[i] == '.') continue;
    (i < dots_position ? leading_letters : trailing_letters) += output_text[i];
  }
  return has_ellipsis ? leading_letters + output + trailing_letters : leading_letters + trailing_letters;
}

}  // namespace

Result<AttentionSizes> attention_sizes(const Node& node, const std::vector<const Sizes*>& inputs) {
  const bool is_onnx_attention = node.operator_domain.empty();
  const Sizes* const query = find_input_sizes(inputs, 0);
  const Sizes* const key = find_input_sizes(inputs, 1);
  const Sizes* const value = find_input_sizes(inputs, 2);
  if (query == nullptr || key == nullptr || value == nullptr) return malformed_error("attention with packed inputs");
  const std::int64_t heads = integer_attribute(node, is_onnx_attention ? "q_num_heads" : "num_heads", 0);
  const std::int64_t key_heads = integer_attribute(node, "kv_num_heads", heads);
  const std::optional<HeadSizes> q = split_into_heads(*query, heads);
  const std::optional<HeadSizes> k = split_into_heads(*key, key_heads);
  const std::optional<HeadSizes> v = split_into_heads(*value, key_heads);
  if (!q || !k || !v) return malformed_error("attention with incompatible sizes");
  AttentionSizes sizes{.batch_size = (*query)[0],
                       .head_count = q->head_count,
                       .query_count = q->token_count,
                       .key_count = k->token_count,
                       .width_per_head = q->width_per_head,
                       .value_width_per_head = v->width_per_head,
                       .key_head_count = k->head_count};
  const bool grouped = node.operator_type == "GroupQueryAttention";
  const Sizes* const past_keys = find_input_sizes(inputs, grouped ? 3 : is_onnx_attention ? 4 : 6);
  if (past_keys != nullptr && past_keys->size() == 4)
    sizes.key_count = std::min(kMaxElements, sizes.key_count + (*past_keys)[2]);
  sizes.is_causal = grouped || integer_attribute(node, is_onnx_attention ? "is_causal" : "unidirectional", 0) != 0;
  return sizes;
}

Result<AttentionSizes> weighted_attention_sizes(const Node& node, const std::vector<const Sizes*>& inputs) {
  const Sizes* const input = find_input_sizes(inputs, 0);
  const Sizes* const weight = find_input_sizes(inputs, 1);
  const std::int64_t heads = integer_attribute(node, "num_heads", 0);
  if (input == nullptr || weight == nullptr || input->size() != 3 || weight->size() != 2 || heads < 1) {
    return malformed_error("attention with incompatible sizes");
  }
  const Sizes parts = integers_attribute(node, "qkv_hidden_sizes");
  const std::int64_t query = parts.size() == 3 ? parts[0] : (*weight)[1] / 3;
  const std::int64_t value = parts.size() == 3 ? parts[2] : (*weight)[1] / 3;
  if (query < 0 || value < 0 || std::max(query, value) > (*weight)[1])
    return malformed_error("attention with incompatible sizes");
  return AttentionSizes{.batch_size = (*input)[0],
                        .head_count = heads,
                        .query_count = (*input)[1],
                        .key_count = (*input)[1],
                        .width_per_head = query / heads,
                        .value_width_per_head = value / heads,
                        .key_head_count = heads,
                        .is_causal = integer_attribute(node, "unidirectional", 0) != 0};
}

Result<Contraction> parse_contraction(std::string_view equation, const std::vector<const Sizes*>& inputs) {
  const std::size_t arrow_position = equation.find("->");
  const std::string_view operands_text = equation.substr(0, arrow_position);
  const std::vector<std::string_view> texts = split(operands_text, ',');
  if (texts.size() != inputs.size() || equation.size() > 256)
    return malformed_error("an equation with another number of inputs");
  std::vector<EinsumTerm> terms;
  LetterSizes size_by_letter{};
  size_by_letter.fill(0);
  for (std::size_t i = 0; i < texts.size(); ++i) {
    const std::optional<EinsumTerm> term =
        inputs[i] == nullptr ? std::nullopt : parse_einsum_term(texts[i], *inputs[i]);
    if (!term) return malformed_error("an equation that does not match the dimensions of its inputs");
    for (std::size_t position = 0; position < term->letters.size(); ++position) {
      const auto letter = static_cast<unsigned char>(term->letters[position]);
      if (letter >= size_by_letter.size()) return malformed_error("an equation with an invalid letter");
      size_by_letter[letter] = std::max(size_by_letter[letter], term->sizes[position]);
    }
    terms.push_back(*term);
  }
  const std::string output = arrow_position == std::string_view::npos
                                 ? implied_output_letters(terms, operands_text)
                                 : parse_explicit_output(equation.substr(arrow_position + 2), terms);
  Contraction contraction;
  for (const char letter : output) {
    if (static_cast<unsigned char>(letter) >= size_by_letter.size())
      return malformed_error("an equation with an invalid letter");
    contraction.output_sizes.push_back(size_by_letter[static_cast<unsigned char>(letter)]);
  }
  set_product_sizes(terms, output, size_by_letter, contraction);
  return contraction;
}

}  // namespace joulemap::predict::onnx
