/// Writes completions and manual pages of h5pack to a folder, at build time:
///
///     write_reference FOLDER
#include <cstdio>
#include <exception>
#include <filesystem>
#include <fstream>
#include <string>

#include <chunkio/version.hpp>

#include "h5pack/commands/commands.hpp"
#include "h5pack/commands/reference.hpp"

namespace {

void write(const std::filesystem::path& path, const std::string& text) {
  std::ofstream file(path, std::ios::binary);
  file.exceptions(std::ios::badbit | std::ios::failbit);
  file << text;
  file.close();
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fputs("usage: write_reference FOLDER\n", stderr);
    return 2;
  }
  try {
    const std::filesystem::path folder = argv[1];
    std::filesystem::create_directories(folder);
    h5pack::Program program;
    write(folder / "h5pack.bash", h5pack::bash_completion(program.app()));
    write(folder / "_h5pack", h5pack::zsh_completion(program.app()));
    write(folder / "h5pack.fish", h5pack::fish_completion(program.app()));
    for (const auto& [name, text] :
         h5pack::manual_pages(program.app(), std::string(chunkio::version()))) {
      write(folder / name, text);
    }
  } catch (const std::exception& error) {
    std::fprintf(stderr, "write_reference: %s: %s\n", argv[1], error.what());
    return 1;
  }
}
