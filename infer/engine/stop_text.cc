#include "plinth/infer/engine/stop_text.h"

#include <algorithm>
#include <utility>

namespace plinth::infer {
namespace {

// Characters at the end of `text` that begin `stop` without completing it.
size_t PartialMatch(const std::string& text, const std::string& stop) {
  for (size_t length = std::min(text.size(), stop.size() - 1); length > 0; --length) {
    if (text.compare(text.size() - length, length, stop, 0, length) == 0) return length;
  }
  return 0;
}

}  // namespace

std::string StopText::Push(const std::string& piece) {
  if (stopped_) return "";
  held_ += piece;
  size_t begin = std::string::npos, end = std::string::npos;
  for (const std::string& stop : stops_) {
    const size_t at = held_.find(stop);
    if (at == std::string::npos) continue;
    const size_t stop_end = at + stop.size();
    if (end == std::string::npos || stop_end < end || (stop_end == end && at < begin)) {
      begin = at;
      end = stop_end;
    }
  }
  if (end != std::string::npos) {
    stopped_ = true;
    held_.resize(begin);
    return std::exchange(held_, "");
  }
  size_t keep = 0;
  for (const std::string& stop : stops_) keep = std::max(keep, PartialMatch(held_, stop));
  std::string released = held_.substr(0, held_.size() - keep);
  held_.erase(0, released.size());
  return released;
}

std::string StopText::Flush() { return std::exchange(held_, ""); }

}  // namespace plinth::infer
