/// The experiments behind the table. Each adds its figures for one image size to the report.
///
/// The contenders are interleaved within a round; ratios are taken within rounds.
#pragma once

#include <string>

#include <chunkio/loader.hpp>

#include "harness/epoch_case.hpp"
#include "harness/figure.hpp"

namespace bench {

/// Page cache warm: the sources against copies of the same rows in memory and against H5Dread.
void measure_warm(const Case& images, Report& report);
/// Against h5py + DataLoader, FFCV, and whole chunks with NumPy.
void measure_peers(const Case& images, Report& report);
/// chunkio from Python against the loaders of bench/peers: uint8 batches, and normalised float32.
void measure_python(const Case& images, Report& report);
/// Nothing in the page cache: the sources against fio.
void measure_cold(const Case& images, Report& report);
/// A deflate file: threads against each other and against libdeflate.
void measure_deflate(const Case& images, Report& report);
/// Data four times the memory, against fio.
void measure_limited(const Case& images, Report& report);
/// What is read, and how often.
void measure_loads(const Case& images, Report& report);
/// The two figures of measure_loads() for the epoch that `loader` has delivered.
/// \param of_file  which file that is; empty: the plain one.
void add_load_figures(const std::string& size, const std::string& of_file,
                      const chunkio::Loader& loader, Report& report);
/// What is allocated, and whether it grows with the dataset.
void measure_memory(const Case& images, Report& report);
/// How long the first batch takes, at the start of an epoch and in its middle.
void measure_resume(const Case& images, Report& report);

}  // namespace bench
