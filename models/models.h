// The package in one include. A program that wants little takes the targets one by one.
#ifndef PLINTH_MODELS_MODELS_H_
#define PLINTH_MODELS_MODELS_H_

#include "plinth/models/cost/cost.h"
#include "plinth/models/loading/load_parameters.h"
#include "plinth/models/nn/eager_ops.h"
#include "plinth/models/nn/model.h"
#include "plinth/models/tokenizer/streaming_decoder.h"
#include "plinth/models/tokenizer/tokenizer.h"
#include "plinth/models/zoo/create.h"

#endif  // PLINTH_MODELS_MODELS_H_
