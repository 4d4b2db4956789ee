// SPDX-License-Identifier: Apache-2.0
#include "page/page_html.h"

#include <fmt/format.h>

#include "page/page_data.h"
#include "page/static_page.h"

namespace joulemap::page {
namespace {

// Nothing is loaded, whatever stands in the file: a browser that knows the rule refuses.
constexpr std::string_view kPolicy =
    "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data:";

std::string title_of(const RunView& view) {
  std::string title;
  for (const std::string& part : view.run.command) title += (title.empty() ? "" : " ") + part;
  return escaped_html(title.empty() ? "a recording" : title);
}

}  // namespace

std::string escaped_html(std::string_view text) {
  std::string escaped;
  escaped.reserve(text.size());
  for (const char character : text) {
    switch (character) {
      case '&':
        escaped += "&amp;";
        break;
      case '<':
        escaped += "&lt;";
        break;
      case '>':
        escaped += "&gt;";
        break;
      case '"':
        escaped += "&quot;";
        break;
      case '\'':
        escaped += "&#39;";
        break;
      default:
        escaped += character;
    }
  }
  return escaped;
}

// In JSON '<' stands in strings only.
std::string embeddable(std::string_view json) {
  std::string safe;
  safe.reserve(json.size());
  for (const char character : json) {
    if (character == '<') {
      safe += "\\u003c";
    } else {
      safe += character;
    }
  }
  return safe;
}

std::string page_html(const RunView& view, const PageBundle& bundle) {
  const bool has_script = !bundle.script.empty();
  const std::string fixed = static_page(view);
  std::string page = fmt::format(
      "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
      "<meta http-equiv=\"Content-Security-Policy\" content=\"{}\">\n"
      "<title>{} · Joulemap</title>\n<style>{}</style>\n</head>\n<body>\n",
      kPolicy, title_of(view), has_script ? bundle.style : static_style());
  if (!has_script) return page + "<main id=\"page\">\n" + fixed + "</main>\n</body>\n</html>\n";
  page += fmt::format("<main id=\"page\"><noscript><style>{}</style>{}</noscript></main>\n", static_style(), fixed);
  page +=
      "<script type=\"application/json\" id=\"joulemap-data\">" + embeddable(page_data(view)) + "</script>\n<script>";
  page += bundle.script;
  page += "</script>\n</body>\n</html>\n";
  return page;
}

}  // namespace joulemap::page
