// SPDX-License-Identifier: Apache-2.0
#include "page/page_html.h"

#include <fmt/format.h>

#include "page/page_data.h"
#include "page/static_page.h"
#include "report/json/diff_json.h"
#include "report/text/diff_text.h"

namespace joulemap::page {
namespace {

// Content security policy: the browser loads no external resource, whatever names the file contains.
constexpr std::string_view kContentSecurityPolicy =
    "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data:";

std::string join_with_spaces(const std::vector<std::string>& texts) {
  std::string joined_text;
  for (const std::string& text : texts) joined_text += (joined_text.empty() ? "" : " ") + text;
  return joined_text;
}

struct PageContent {
  std::string title;
  std::string data;           // JSON
  std::string noscript_html;  // HTML that is shown without scripts
};

std::string assemble_page(const PageContent& parts, const PageBundle& bundle) {
  const bool has_script = !bundle.script.empty();
  std::string page = fmt::format(
      "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
      "<meta http-equiv=\"Content-Security-Policy\" content=\"{}\">\n"
      "<title>{} · Joulemap</title>\n<style>{}</style>\n</head>\n<body>\n",
      kContentSecurityPolicy, escape_html(parts.title), has_script ? bundle.style : static_page_css());
  if (!has_script) return page + "<main id=\"page\">\n" + parts.noscript_html + "</main>\n</body>\n</html>\n";
  page += fmt::format("<main id=\"page\"><noscript><style>{}</style>{}</noscript></main>\n", static_page_css(),
                      parts.noscript_html);
  page += "<script type=\"application/json\" id=\"joulemap-data\">" + escape_json_for_script(parts.data) +
          "</script>\n<script>";
  page += bundle.script;
  return page + "</script>\n</body>\n</html>\n";
}

}  // namespace

std::string escape_html(std::string_view text) {
  std::string escaped_html;
  escaped_html.reserve(text.size());
  for (const char character : text) {
    switch (character) {
      case '&':
        escaped_html += "&amp;";
        break;
      case '<':
        escaped_html += "&lt;";
        break;
      case '>':
        escaped_html += "&gt;";
        break;
      case '"':
        escaped_html += "&quot;";
        break;
      case '\'':
        escaped_html += "&#39;";
        break;
      default:
        escaped_html += character;
    }
  }
  return escaped_html;
}

// Escapes each '<', which in JSON occurs only in strings.
std::string escape_json_for_script(std::string_view json) {
  std::string escaped_json;
  escaped_json.reserve(json.size());
  for (const char character : json) {
    if (character == '<') {
      escaped_json += "\\u003c";
    } else {
      escaped_json += character;
    }
  }
  return escaped_json;
}

std::string page_html(const RunView& view, const PageBundle& bundle) {
  const std::string command = join_with_spaces(view.run.command);
  return assemble_page({command.empty() ? "a recording" : command, page_data(view), static_page(view)}, bundle);
}

std::string diff_html(const RunDifference& difference, const PageBundle& bundle) {
  const std::string title = join_with_spaces(difference.a.inputs) + " → " + join_with_spaces(difference.b.inputs);
  const std::string text = report::diff_text(difference, 0, {});
  return assemble_page({title, report::diff_json(difference), "<pre>" + escape_html(text) + "</pre>\n"}, bundle);
}

}  // namespace joulemap::page
