/// Everything chunkio offers, in one include.
#pragma once

// IWYU pragma: begin_exports
#include <chunkio/byte_source.hpp>
#include <chunkio/chunk_layout.hpp>
#include <chunkio/dataset.hpp>
#include <chunkio/dataset_writer.hpp>
#include <chunkio/diagnosis.hpp>
#include <chunkio/disk_limit.hpp>
#include <chunkio/epoch_order.hpp>
#include <chunkio/error.hpp>
#include <chunkio/inspection.hpp>
#include <chunkio/json.hpp>
#include <chunkio/labels.hpp>
#include <chunkio/loader.hpp>
#include <chunkio/normalizer.hpp>
#include <chunkio/option_names.hpp>
#include <chunkio/pixel_statistics.hpp>
#include <chunkio/ranks.hpp>
#include <chunkio/shards.hpp>
#include <chunkio/stage_rates.hpp>
#include <chunkio/tensor.hpp>
#include <chunkio/throughput.hpp>
#include <chunkio/tuning.hpp>
#include <chunkio/verify.hpp>
#include <chunkio/version.hpp>
// IWYU pragma: end_exports
