#include "plinth/comm/rendezvous/node_list.h"

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "plinth/hardware/base/status_macros.h"

namespace plinth::comm {
namespace {

// Numbers in ranges; more digits than any cluster needs.
constexpr size_t kMostDigits = 9;
// As long as names of hosts can be; bounds the memory that a hostile list can ask for.
constexpr size_t kMostNameCharacters = 255;
constexpr size_t kMostQuoted = 200;  // characters of a list in an error

bool IsDigit(char c) { return c >= '0' && c <= '9'; }

// Characters of host names. Slurm separates by commas and brackets alone; white space and
// control characters would only confuse the messages that a name appears in.
bool IsNameCharacter(char c) { return c > ' ' && c < 127 && c != ',' && c != '[' && c != ']'; }

// Reads a text from its front.
class Reader {
 public:
  explicit Reader(std::string_view text) : text_(text) {}

  bool AtEnd() const { return at_ == text_.size(); }
  bool Take(char c) {
    if (AtEnd() || text_[at_] != c) return false;
    ++at_;
    return true;
  }
  bool Take(std::string_view word) {
    if (text_.substr(at_, word.size()) != word) return false;
    at_ += word.size();
    return true;
  }
  template <typename Predicate>
  std::string_view TakeWhile(const Predicate& predicate) {
    const size_t begin = at_;
    while (!AtEnd() && predicate(text_[at_])) ++at_;
    return text_.substr(begin, at_ - begin);
  }
  absl::Status Wrong(const std::string& what) const {
    return absl::InvalidArgumentError(
        absl::StrCat("\"", absl::CEscape(std::string(text_.substr(0, kMostQuoted))), "\": ", what,
                     " at character ", at_ + 1));
  }

 private:
  std::string_view text_;
  size_t at_ = 0;
};

struct Number {
  int value = 0;
  size_t digits = 0;
};

absl::StatusOr<Number> TakeNumber(Reader& in) {
  const std::string_view digits = in.TakeWhile(IsDigit);
  if (digits.empty() || digits.size() > kMostDigits) {
    return in.Wrong(absl::StrCat("want a number of 1 to ", kMostDigits, " digits"));
  }
  Number number{0, digits.size()};
  for (const char digit : digits) number.value = number.value * 10 + (digit - '0');
  return number;
}

std::string Padded(int value, size_t digits) {
  std::string text = absl::StrCat(value);
  if (text.size() < digits) text.insert(0, digits - text.size(), '0');
  return text;
}

// What stands between brackets, after the opening one: "1-3,07-09]".
absl::StatusOr<std::vector<std::string>> TakeRanges(Reader& in) {
  std::vector<std::string> numbers;
  do {
    ASSIGN_OR_RETURN(const Number first, TakeNumber(in));
    Number last = first;
    if (in.Take('-')) {
      ASSIGN_OR_RETURN(last, TakeNumber(in));
    }
    if (last.value < first.value) return in.Wrong("a range that runs backwards");
    if (static_cast<size_t>(last.value - first.value) >= kMostNodes - numbers.size()) {
      return in.Wrong(absl::StrCat("more than ", kMostNodes, " nodes"));
    }
    for (int value = first.value; value <= last.value; ++value) {
      numbers.push_back(Padded(value, first.digits));
    }
  } while (in.Take(','));
  if (!in.Take(']')) return in.Wrong("want a comma or a closing bracket");
  return numbers;
}

// One item of the list: plain text and brackets in any order.
absl::StatusOr<std::vector<std::string>> TakeNames(Reader& in) {
  std::vector<std::string> names = {""};
  bool empty = true;
  while (true) {
    const std::string_view plain = in.TakeWhile(IsNameCharacter);
    if (names.front().size() + plain.size() > kMostNameCharacters) {
      return in.Wrong(absl::StrCat("a name longer than ", kMostNameCharacters));
    }
    for (std::string& name : names) name.append(plain);
    empty = empty && plain.empty();
    if (!in.Take('[')) break;
    empty = false;
    ASSIGN_OR_RETURN(const std::vector<std::string> numbers, TakeRanges(in));
    if (names.size() * numbers.size() > kMostNodes) {
      return in.Wrong(absl::StrCat("more than ", kMostNodes, " nodes"));
    }
    std::vector<std::string> longer;
    for (const std::string& name : names) {
      for (const std::string& number : numbers) longer.push_back(name + number);
    }
    names = std::move(longer);
  }
  if (empty) return in.Wrong("want a name");
  return names;
}

}  // namespace

absl::StatusOr<std::vector<std::string>> ExpandNodeList(std::string_view text) {
  Reader in(text);
  std::vector<std::string> nodes;
  do {
    ASSIGN_OR_RETURN(std::vector<std::string> names, TakeNames(in));
    if (nodes.size() + names.size() > kMostNodes) {
      return in.Wrong(absl::StrCat("more than ", kMostNodes, " nodes"));
    }
    std::move(names.begin(), names.end(), std::back_inserter(nodes));
  } while (in.Take(','));
  if (!in.AtEnd()) return in.Wrong("want a comma or the end");
  return nodes;
}

absl::StatusOr<std::vector<int>> ExpandTaskCounts(std::string_view text) {
  Reader in(text);
  std::vector<int> counts;
  do {
    ASSIGN_OR_RETURN(const Number tasks, TakeNumber(in));
    Number times{1, 1};
    if (in.Take("(x")) {
      ASSIGN_OR_RETURN(times, TakeNumber(in));
      if (!in.Take(')')) return in.Wrong("want a closing parenthesis");
    }
    if (tasks.value == 0 || times.value == 0) return in.Wrong("a count of zero");
    if (static_cast<size_t>(times.value) > kMostNodes - counts.size()) {
      return in.Wrong(absl::StrCat("more than ", kMostNodes, " nodes"));
    }
    counts.insert(counts.end(), times.value, tasks.value);
  } while (in.Take(','));
  if (!in.AtEnd()) return in.Wrong("want a comma or the end");
  return counts;
}

}  // namespace plinth::comm
