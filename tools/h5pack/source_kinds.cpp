#include "source_kinds.hpp"

#include "sources/celeba_source.hpp"
#include "sources/cifar_source.hpp"
#include "sources/csv_source.hpp"
#include "sources/folder_source.hpp"

namespace h5pack {

const std::array<SourceKind, 4>& source_kinds() noexcept {
  static constexpr std::array<SourceKind, 4> kKinds = {
      {{"folder", "a folder of pictures; its class folders give the labels", "DIR",
        "Folder of class folders, of pictures, or of train/, val/ and test/",
        "File to write; a folder if DIR has splits",
        [](const PackCommand& command) { return list_folder(command.input); }},
       {"cifar", "CIFAR-10 or CIFAR-100 (binary version)", "DIR", "Folder with the .bin files",
        "Folder for train.h5 and test.h5",
        [](const PackCommand& command) { return list_cifar(command.input); }},
       {"celeba", "CelebA with its attributes", "DIR",
        "Folder with img_align_celeba/ and list_attr_celeba.txt or .csv",
        "Folder for train.h5, val.h5 and test.h5",
        [](const PackCommand& command) { return list_celeba(command.input); }},
       {"csv", "the pictures that a CSV file lists", "FILE",
        "CSV file whose first line names the columns", "File to write",
        [](const PackCommand& command) { return list_csv(command.input, command.csv); }}}};
  return kKinds;
}

}  // namespace h5pack
