/// h5pack append csr: what h5pack append and h5pack csr share.
#pragma once

#include <memory>
#include <string>

#include <CLI/CLI.hpp>

#include <chunkio/dataset.hpp>

#include "cli/command.hpp"

namespace h5pack {

/// The file that rows are appended to.
struct OldFile {
  std::string path = {};
  chunkio::OpenOptions open = {};
};

/// Adds the command that appends rows of a sparse matrix to the file `before`.
void add_append_csr(CLI::App& append, const cli::GlobalOptions& global, cli::Action& action,
                    const std::shared_ptr<OldFile>& before);

}  // namespace h5pack
