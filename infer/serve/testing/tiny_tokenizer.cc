#include "plinth/infer/serve/testing/tiny_tokenizer.h"

#include "plinth/hardware/base/check.h"
#include "plinth/models/tokenizer/bpe_trainer.h"

namespace plinth::infer::testing {
namespace {

constexpr char kText[] =
    "A plinth is the lowest part of a column: the square block on which the round stone "
    "stands. The mason sets it first, levels it twice, and never moves it again. What is "
    "built upon it may be carved, painted or torn down; the plinth carries the weight of "
    "each new column in turn. In the old town the columns of the market stand on plinths of "
    "grey stone, and the water of the river runs between them in the spring. The masons say "
    "that a good stone needs no mortar, and that the best of the columns are those that "
    "were turned by hand in the winter, when the light is low and the shadows are long.\n";

}  // namespace

std::unique_ptr<models::Tokenizer> TinyTokenizer() {
  auto trainer = models::BpeTrainer::Create({.vocab_size = 320});
  CHECK_OK(trainer);
  CHECK_OK((*trainer)->AddText(kText));
  auto tokenizer = (*trainer)->Train();
  CHECK_OK(tokenizer);
  return *std::move(tokenizer);
}

}  // namespace plinth::infer::testing
