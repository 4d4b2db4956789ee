// SPDX-License-Identifier: Apache-2.0
//
// Adapter of XGBoost's C interface, which no other file includes. The library is loaded at run time.
#include <dlfcn.h>
#include <fmt/format.h>
#include <xgboost/c_api.h>

#include <array>
#include <filesystem>
#include <memory>
#include <string>
#include <utility>

#include "formats/document.h"
#include "predict/model/regression_trees.h"

namespace joulemap::predict {
namespace {

namespace fs = std::filesystem;
constexpr const char* kXgboostLibrary = "libxgboost.so.0";

struct XgboostFunctions {
  decltype(&XGDMatrixCreateFromMat) create_matrix = nullptr;
  decltype(&XGDMatrixSetFloatInfo) set_info = nullptr;
  decltype(&XGDMatrixFree) free_matrix = nullptr;
  decltype(&XGBoosterCreate) create = nullptr;
  decltype(&XGBoosterSetParam) set = nullptr;
  decltype(&XGBoosterUpdateOneIter) update = nullptr;
  decltype(&XGBoosterDumpModelEx) dump = nullptr;
  decltype(&XGBoosterFree) free = nullptr;
  decltype(&XGBGetLastError) last_error = nullptr;
};

// Path of the library in the Python package xgboost, if this executable runs from the Python package joulemap, which
// pip installs beside it; else empty.
std::string find_packaged_xgboost() {
  std::error_code failure;
  const fs::path package = fs::read_symlink("/proc/self/exe", failure).parent_path().parent_path();
  if (failure || !fs::exists(package / "__init__.py", failure)) return "";
  return package.parent_path() / "xgboost" / "lib" / "libxgboost.so";
}

Result<XgboostFunctions> open_xgboost() {
  void* library = dlopen(kXgboostLibrary, RTLD_NOW | RTLD_LOCAL);
  const std::string cause = library == nullptr ? dlerror() : "";
  const std::string package_library = library == nullptr ? find_packaged_xgboost() : "";
  if (!package_library.empty()) library = dlopen(package_library.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    return Error{ErrorCode::unsupported, fmt::format("cannot open {}: {}", kXgboostLibrary, cause),
                 package_library.empty() ? "apt-get install libxgboost0" : "pip install 'joulemap[fit]'"};
  }
  XgboostFunctions xgboost_functions;
  const auto resolve = [library](const char* name, auto& function) {
    function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(dlsym(library, name));
    return function != nullptr;
  };
  const bool has_all_functions =
      resolve("XGDMatrixCreateFromMat", xgboost_functions.create_matrix) &&
      resolve("XGDMatrixSetFloatInfo", xgboost_functions.set_info) &&
      resolve("XGDMatrixFree", xgboost_functions.free_matrix) && resolve("XGBoosterCreate", xgboost_functions.create) &&
      resolve("XGBoosterSetParam", xgboost_functions.set) &&
      resolve("XGBoosterUpdateOneIter", xgboost_functions.update) &&
      resolve("XGBoosterDumpModelEx", xgboost_functions.dump) && resolve("XGBoosterFree", xgboost_functions.free) &&
      resolve("XGBGetLastError", xgboost_functions.last_error);
  if (!has_all_functions)
    return Error{ErrorCode::unsupported, fmt::format("{} lacks a required function", kXgboostLibrary), ""};
  return xgboost_functions;
}

std::string monotone_constraints_text(const std::vector<int>& directions) {
  std::string text = "(";
  for (const int direction : directions) text += fmt::format("{}{}", text.size() > 1 ? "," : "", direction);
  return text + ")";
}

// Appends a node and its descendants from XGBoost's JSON dump, in which children are nested; false if malformed.
// TreeFitOptions::max_depth bounds the recursion.
bool append_tree_node(const formats::DocumentValue& json, RegressionTrees& trees, std::int32_t& index) {
  index = static_cast<std::int32_t>(trees.nodes.size());
  trees.nodes.emplace_back();
  if (const auto leaf = json.number("leaf")) {
    trees.nodes.back().value = static_cast<float>(*leaf);
    return true;
  }
  const std::string split_feature_name = json.text_or_empty("split");
  const auto yes_child = json.integer("yes");
  const formats::DocumentValue* children = json.find("children");
  if (split_feature_name.size() < 2 || !yes_child || children == nullptr || children->array() == nullptr ||
      children->array()->size() != 2)
    return false;
  const formats::DocumentValue* left_child = &children->array()->front();
  const formats::DocumentValue* right_child = &children->array()->back();
  if (left_child->integer("nodeid") != yes_child) std::swap(left_child, right_child);
  std::int32_t left_index = 0;
  std::int32_t right_index = 0;
  if (!append_tree_node(*left_child, trees, left_index) || !append_tree_node(*right_child, trees, right_index))
    return false;
  TreeNode& node = trees.nodes[static_cast<std::size_t>(index)];
  node.feature = std::stoi(split_feature_name.substr(1));
  node.value = static_cast<float>(json.number("split_condition").value_or(0));
  node.left = left_index;
  node.right = right_index;
  return true;
}

std::vector<std::pair<std::string, std::string>> xgboost_settings(const TreeFitOptions& options) {
  return {{"objective", "reg:squarederror"},
          {"base_score", "0"},
          {"tree_method", "hist"},
          {"max_bin", "256"},
          {"nthread", "1"},
          {"seed", "11"},
          {"verbosity", "0"},
          {"max_depth", std::to_string(options.max_depth)},
          {"eta", std::to_string(options.learning_rate)},
          {"subsample", std::to_string(options.row_subsample)},
          {"num_parallel_tree", std::to_string(options.trees_per_round)},
          {"colsample_bytree", std::to_string(options.column_subsample)},
          {"colsample_bynode", std::to_string(options.split_column_subsample)},
          {"min_child_weight", std::to_string(options.min_leaf_weight)},
          {"lambda", std::to_string(options.l2_regularization)}};
}

Error xgboost_error(const XgboostFunctions& xgboost) {
  return Error{ErrorCode::unsupported, fmt::format("XGBoost: {}", xgboost.last_error()), ""};
}

Result<RegressionTrees> read_trees(const XgboostFunctions& xgboost, BoosterHandle booster) {
  bst_ulong count = 0;
  const char** texts = nullptr;
  if (xgboost.dump(booster, "", 0, "json", &count, &texts) != 0) return xgboost_error(xgboost);
  RegressionTrees trees;
  for (bst_ulong number = 0; number < count; ++number) {
    const Result<formats::DocumentValue> json = formats::read_json(texts[number], "a tree");
    std::int32_t root = 0;
    if (!json) return json.error();
    if (!append_tree_node(*json, trees, root)) return Error{ErrorCode::malformed, "invalid XGBoost tree", ""};
    trees.roots.push_back(root);
  }
  return trees;
}

}  // namespace

Result<RegressionTrees> fit_trees(const TreeTrainingData& rows, const TreeFitOptions& options) {
  const Result<XgboostFunctions> xgboost_functions = open_xgboost();
  if (!xgboost_functions) return xgboost_functions.error();
  const XgboostFunctions& xgboost = *xgboost_functions;
  DMatrixHandle matrix = nullptr;
  if (xgboost.create_matrix(rows.features.data(), rows.size(), rows.columns, NAN, &matrix) != 0)
    return xgboost_error(xgboost);
  const std::unique_ptr<void, decltype(xgboost.free_matrix)> owned_matrix(matrix, xgboost.free_matrix);
  BoosterHandle booster = nullptr;
  if (xgboost.set_info(matrix, "label", rows.targets.data(), rows.size()) != 0 ||
      xgboost.set_info(matrix, "weight", rows.weights.data(), rows.size()) != 0 ||
      xgboost.create(&matrix, 1, &booster) != 0) {
    return xgboost_error(xgboost);
  }
  const std::unique_ptr<void, decltype(xgboost.free)> owned_booster(booster, xgboost.free);
  for (const auto& [name, value] : xgboost_settings(options)) xgboost.set(booster, name.c_str(), value.c_str());
  if (!options.monotone_constraints.empty()) {
    xgboost.set(booster, "monotone_constraints", monotone_constraints_text(options.monotone_constraints).c_str());
  }
  for (int round = 0; round < options.boosting_rounds; ++round) {
    if (xgboost.update(booster, round, matrix) != 0) return xgboost_error(xgboost);
  }
  return read_trees(xgboost, booster);
}

}  // namespace joulemap::predict
