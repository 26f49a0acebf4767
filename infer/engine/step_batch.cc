#include "plinth/infer/engine/step_batch.h"

#include <algorithm>

#include "plinth/hardware/base/check.h"

namespace plinth::infer {

void StepBatch::Append(Sequence& sequence) {
  const int64_t first = static_cast<int64_t>(ids_.size());
  CHECK_GE(static_cast<int64_t>(sequence.pages().pages().size()) * kv_.page_tokens,
           sequence.cached() + sequence.step_tokens);
  for (int64_t i = 0; i < sequence.step_tokens; ++i) {
    const int64_t position = sequence.cached() + i;
    ids_.push_back(sequence.tokens()[static_cast<size_t>(position)]);
    positions_.push_back(static_cast<int32_t>(position));
  }
  seq_starts_.push_back(static_cast<int32_t>(ids_.size()));
  past_.push_back(static_cast<int32_t>(sequence.cached()));
  const size_t table_row = page_table_.size();
  page_table_.resize(table_row + static_cast<size_t>(kv_.max_pages), 0);
  std::ranges::copy(sequence.pages().pages(),
                    page_table_.begin() + static_cast<std::ptrdiff_t>(table_row));
  for (const int64_t row : sequence.WantedRows()) {
    output_rows_.push_back(static_cast<int32_t>(first + row));
  }
  row_starts_.push_back(static_cast<int64_t>(output_rows_.size()));
}

void StepBatch::Build(const std::vector<std::unique_ptr<Sequence>>& sequences,
                      const KvCache& cache) {
  for (auto* array : {&ids_, &positions_, &seq_starts_, &past_, &page_table_, &output_rows_}) {
    array->clear();
  }
  seq_starts_.push_back(0);
  row_starts_.assign(1, 0);
  size_t most_pages = 1;
  for (const auto& s : sequences) most_pages = std::max(most_pages, s->pages().pages().size());
  kv_ = {.layers = cache.layers(),
         .page_tokens = cache.page_tokens(),
         .max_pages = static_cast<int64_t>(most_pages)};
  for (const auto& sequence : sequences) Append(*sequence);
  kv_.page_table = page_table_;
  kv_.past = past_;
  batch_ = {.ids = ids_,
            .positions = positions_,
            .seq_starts = seq_starts_,
            .output_rows = output_rows_,
            .all_rows = false,
            .kv = &kv_};
}

}  // namespace plinth::infer
