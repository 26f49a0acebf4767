// The package in one include. A program that wants little takes the targets one by one.
#ifndef PLINTH_INFER_INFER_H_
#define PLINTH_INFER_INFER_H_

#include "plinth/infer/engine/engine.h"
#include "plinth/infer/load/served_model.h"

#endif  // PLINTH_INFER_INFER_H_
