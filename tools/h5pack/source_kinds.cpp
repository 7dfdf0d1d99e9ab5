#include "source_kinds.hpp"

#include "sources/celeba_source.hpp"
#include "sources/cifar_source.hpp"
#include "sources/csv_source.hpp"
#include "sources/folder_source.hpp"

namespace h5pack {

const std::array<SourceKind, 4>& source_kinds() noexcept {
  static constexpr std::array<SourceKind, 4> kKinds = {
      {{"folder",
        "a folder of images; its class folders give the labels",
        "DIR",
        "Folder of class folders, of images, or of train/, val/ and test/",
        "File to write; a folder if DIR has splits",
        {"h5pack folder photos/ -o train.h5 --resize 64 --center-crop 64x64",
         "h5pack folder photos/ -o train.h5 --resume --on-error skip --report bad.jsonl"},
        {"h5pack append train.h5 folder more-photos/ -o larger.h5",
         "h5pack append train.h5 folder more-photos/ -o larger.h5 --order shuffled"},
        [](const PackCommand& command) { return list_folder(command.input); }},
       {"cifar",
        "CIFAR-10 or CIFAR-100 (binary version)",
        "DIR",
        "Folder with the .bin files",
        "Folder for train.h5 and test.h5",
        {"h5pack cifar cifar-10-batches-bin/ -o cifar10/",
         "h5pack cifar cifar-100-binary/ -o cifar100/ --dry-run"},
        {"h5pack append train.h5 cifar cifar-10-batches-bin/ -o larger.h5 --split test",
         "h5pack append train.h5 cifar cifar-10-batches-bin/ -o larger.h5 --dry-run"},
        [](const PackCommand& command) { return list_cifar(command.input); }},
       {"celeba",
        "CelebA with its attributes",
        "DIR",
        "Folder with img_align_celeba/ and list_attr_celeba.txt or .csv",
        "Folder for train.h5, val.h5 and test.h5",
        {"h5pack celeba celeba/ -o celeba-packed/",
         "h5pack celeba celeba/ -o celeba-packed/ --center-crop 178x178 --resize 64"},
        {"h5pack append train.h5 celeba celeba/ -o larger.h5 --split val",
         "h5pack append train.h5 celeba celeba/ -o larger.h5 --dry-run"},
        [](const PackCommand& command) { return list_celeba(command.input); }},
       {"csv",
        "the images that a CSV file lists",
        "FILE",
        "CSV file whose first line names the columns; - reads standard input",
        "File to write",
        {"h5pack csv list.csv -o train.h5",
         "h5pack csv list.csv -o train.h5 --path-column file --label-column class"},
        {"h5pack append train.h5 csv more.csv -o larger.h5",
         "h5pack append train.h5 csv more.csv -o larger.h5 --order shuffled"},
        [](const PackCommand& command) { return list_csv(command.input, command.csv); }}}};
  return kKinds;
}

}  // namespace h5pack
