// TextDecoder: how the engine turns a reply's tokens into text, one token at a time.
#ifndef PLINTH_INFER_ENGINE_TEXT_DECODER_H_
#define PLINTH_INFER_ENGINE_TEXT_DECODER_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

namespace plinth::infer {

// State of one reply. Used by one thread at a time.
class TextDecoder {
 public:
  virtual ~TextDecoder() = default;
  // Text that `id` completes: whole characters only, empty while one is unfinished.
  virtual std::string Push(int32_t id) = 0;
  // What is left at the end of the reply (an unfinished character, made visible).
  virtual std::string Flush() = 0;
};

// Makes the decoder of a new reply. Called on any thread.
using TextDecoderFactory = std::function<std::unique_ptr<TextDecoder>()>;

}  // namespace plinth::infer

#endif  // PLINTH_INFER_ENGINE_TEXT_DECODER_H_
