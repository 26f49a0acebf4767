// A small real tokenizer for tests: 256 bytes, 63 merges, <|endoftext|>.
#ifndef PLINTH_INFER_SERVE_TESTING_TINY_TOKENIZER_H_
#define PLINTH_INFER_SERVE_TESTING_TINY_TOKENIZER_H_

#include <memory>

#include "plinth/models/tokenizer/tokenizer.h"

namespace plinth::infer::testing {

// Learned from a few English sentences: emoji and accents stay single bytes.
std::unique_ptr<models::Tokenizer> TinyTokenizer();

}  // namespace plinth::infer::testing

#endif  // PLINTH_INFER_SERVE_TESTING_TINY_TOKENIZER_H_
