/// Which of several reader processes this one is.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include <chunkio/export.hpp>

namespace chunkio {

/// This reader and how many there are: 0 <= rank < world_size.
struct Ranks {
  std::int64_t rank = 0;
  std::int64_t world_size = 1;
  /// The variables they were read from ("RANK and WORLD_SIZE"); empty if they were not.
  std::string origin = {};

  /// From what the launcher has set: torchrun (RANK, WORLD_SIZE), else Open MPI
  /// (OMPI_COMM_WORLD_RANK, OMPI_COMM_WORLD_SIZE), else PMI (PMI_RANK, PMI_SIZE), else Slurm
  /// (SLURM_PROCID, SLURM_NTASKS); the first pair of which a variable is set, be it to nothing,
  /// counts. Not while another thread changes the environment.
  /// \throws Error invalid_argument: none is set, only one of a pair is, or the values are not
  ///         numbers with 0 <= rank < world_size. The message names the variables.
  static CHUNKIO_EXPORT Ranks from_environment();
  /// The same, but absent if none of the variables is set.
  static CHUNKIO_EXPORT std::optional<Ranks> find_in_environment();
};

}  // namespace chunkio
