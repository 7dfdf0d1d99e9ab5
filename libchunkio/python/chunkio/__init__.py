"""Image datasets in HDF5, delivered as shuffled uint8 batches at the speed of memory and disk.

    import chunkio

    data = chunkio.Dataset("train.h5")
    loader = chunkio.Loader(data, batch_size=256, seed=7)
    for images, labels in loader:
        ...

`chunkio.torch.DataLoader` gives the same batches as tensors of PyTorch, normalised. `chunkio.Writer` and
`chunkio.pack` write files; the program `h5pack` packs folders of images.
"""

from ._core import Batch, Tensor
from ._core import version as __version__
from ._dataset import Dataset
from ._loader import Loader
from ._normalizer import Normalizer
from ._writer import Writer, pack
from .errors import Error

__all__ = ["Batch", "Dataset", "Error", "Loader", "Normalizer", "Tensor", "Writer", "__version__", "pack"]
