// StopText: ends a streamed text before the first stop text that appears in it.
#ifndef PLINTH_INFER_ENGINE_STOP_TEXT_H_
#define PLINTH_INFER_ENGINE_STOP_TEXT_H_

#include <string>
#include <vector>

namespace plinth::infer {

// Of several matches the one that ends first counts, among those the longest: what is
// released does not depend on how the text is cut into pieces. Used by one thread.
class StopText {
 public:
  // `stops` may be empty; none of them is.
  explicit StopText(std::vector<std::string> stops) : stops_(std::move(stops)) {}

  // Adds a piece and returns the text that can no longer be part of a stop text. After a
  // match: the text before it, and nothing from then on.
  std::string Push(const std::string& piece);
  // What is held back, at the end of the text.
  std::string Flush();
  bool stopped() const { return stopped_; }

 private:
  const std::vector<std::string> stops_;
  std::string held_;
  bool stopped_ = false;
};

}  // namespace plinth::infer

#endif  // PLINTH_INFER_ENGINE_STOP_TEXT_H_
