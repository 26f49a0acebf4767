// The package in one include. A program that wants little takes the targets one by one.
#ifndef PLINTH_STORAGE_STORAGE_H_
#define PLINTH_STORAGE_STORAGE_H_

#include "plinth/storage/checkpoint/catalog.h"
#include "plinth/storage/checkpoint/reader.h"
#include "plinth/storage/checkpoint/writer.h"
#include "plinth/storage/dataset/batch_sampler.h"
#include "plinth/storage/dataset/token_dataset.h"
#include "plinth/storage/formats/safetensors/model.h"
#include "plinth/storage/formats/safetensors/reader.h"
#include "plinth/storage/formats/safetensors/writer.h"
#include "plinth/storage/io/checksum.h"
#include "plinth/storage/io/directory.h"
#include "plinth/storage/io/read_file.h"

#endif  // PLINTH_STORAGE_STORAGE_H_
