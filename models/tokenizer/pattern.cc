#include <cctype>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "plinth/hardware/base/status_macros.h"
#include "plinth/models/tokenizer/pre_tokenizer.h"

namespace plinth::models {
namespace {

// Unicode's White_Space, to be placed inside a class.
constexpr std::string_view kWhiteSpace =
    R"(\x09-\x0D\x20\x85\xA0\x{1680}\x{2000}-\x{200A}\x{2028}\x{2029}\x{202F}\x{205F}\x{3000})";

class Translator {
 public:
  explicit Translator(std::string_view pattern) : in_(pattern) {}

  absl::StatusOr<std::string> Run() {
    while (at_ < in_.size()) RETURN_IF_ERROR(Item());
    return std::move(out_);
  }

 private:
  absl::Status Unsupported(std::string_view what) const {
    return absl::UnimplementedError(absl::StrCat("pattern position ", at_, ": ", std::string(what),
                                                 " is not supported in \"", std::string(in_),
                                                 "\""));
  }
  bool LooksAt(std::string_view text) const { return in_.substr(at_).starts_with(text); }
  void Copy(size_t n) {
    out_.append(in_.substr(at_, n));
    at_ += n;
  }

  absl::Status Item() {
    switch (in_[at_]) {
      case '\\':
        return Escape(/*in_class=*/false);
      case '[':
        return Class();
      case '(':
        return Group();
      case '.':
      case '^':
      case '$':
        return Unsupported(in_.substr(at_, 1));
      case '{':
        if (LooksAt("{,")) return Unsupported("{,n}");
        break;
      case '}':
        if (LooksAt("}+")) return Unsupported("a possessive {m,n}+");
        break;
      default:
        break;
    }
    Copy(1);
    return absl::OkStatus();
  }

  absl::Status Group() {
    if (LooksAt("(*")) return Unsupported("a verb (*...)");
    if (!LooksAt("(?")) {
      Copy(1);
      return absl::OkStatus();
    }
    for (const std::string_view head : {"(?:", "(?i:", "(?!", "(?=", "(?<!", "(?<=", "(?>"}) {
      if (LooksAt(head)) {
        Copy(head.size());
        return absl::OkStatus();
      }
    }
    return Unsupported("this kind of group");
  }

  absl::Status Class() {
    Copy(1);
    if (LooksAt("^")) Copy(1);
    if (LooksAt("]")) return Unsupported("an empty class");
    while (!LooksAt("]")) {
      if (at_ == in_.size()) return absl::InvalidArgumentError("pattern ends inside [...]");
      if (LooksAt("[")) return Unsupported("a class within a class");
      if (LooksAt("&&")) return Unsupported("&&");
      if (LooksAt("\\")) {
        RETURN_IF_ERROR(Escape(/*in_class=*/true));
      } else {
        Copy(1);
      }
    }
    Copy(1);
    return absl::OkStatus();
  }

  absl::Status Escape(bool in_class) {
    if (at_ + 1 == in_.size()) return absl::InvalidArgumentError("pattern ends after \\");
    const char c = in_[at_ + 1];
    if (c == 's' || c == 'S') return WhiteSpace(in_class, /*negated=*/c == 'S');
    if (c == 'p' || c == 'P' || c == 'x') {
      const size_t close = in_.find('}', at_);
      if (at_ + 2 == in_.size() || in_[at_ + 2] != '{' || close == std::string_view::npos) {
        return Unsupported("this form of \\p or \\x");
      }
      Copy(close + 1 - at_);
      return absl::OkStatus();
    }
    const bool known = std::string_view("dDrnt").find(c) != std::string_view::npos;
    if (!known && (std::isalnum(static_cast<unsigned char>(c)) != 0)) {
      return Unsupported(in_.substr(at_, 2));
    }
    Copy(2);
    return absl::OkStatus();
  }

  absl::Status WhiteSpace(bool in_class, bool negated) {
    if (in_class && negated) return Unsupported("\\S within a class");
    if (!in_class) out_.append(negated ? "[^" : "[");
    out_.append(kWhiteSpace);
    if (!in_class) out_.append("]");
    at_ += 2;
    return absl::OkStatus();
  }

  std::string_view in_;
  size_t at_ = 0;
  std::string out_;
};

}  // namespace

absl::StatusOr<std::string> TranslatePattern(std::string_view pattern) {
  return Translator(pattern).Run();
}

}  // namespace plinth::models
