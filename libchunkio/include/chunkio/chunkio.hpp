/// Everything chunkio offers on the host, in one include.
///
///     #include <chunkio/chunkio.hpp>
///
/// <chunkio/cuda/device_loader.hpp>, <chunkio/dlpack.hpp> and <chunkio/torch.hpp> are included by
/// themselves. What the headers share: functions that can fail throw chunkio::Error (error.hpp),
/// and each header says what may be called from several threads.
#pragma once

// IWYU pragma: begin_exports
#include <chunkio/bottleneck.hpp>
#include <chunkio/byte_source.hpp>
#include <chunkio/chunk_layout.hpp>
#include <chunkio/dataset.hpp>
#include <chunkio/dataset_writer.hpp>
#include <chunkio/disk_limit.hpp>
#include <chunkio/epoch_order.hpp>
#include <chunkio/error.hpp>
#include <chunkio/loader.hpp>
#include <chunkio/normalizer.hpp>
#include <chunkio/option_names.hpp>
#include <chunkio/statistics.hpp>
#include <chunkio/tensor.hpp>
#include <chunkio/tuning.hpp>
#include <chunkio/verify.hpp>
#include <chunkio/version.hpp>
// IWYU pragma: end_exports
