"""Image datasets in HDF5, delivered as shuffled uint8 batches at the speed of memory and disk.

    import chunkio

    data = chunkio.Dataset("train.h5")
    loader = chunkio.Loader(data, batch_size=256, seed=7)
    for images, labels in loader:
        ...

`chunkio.torch.DataLoader` gives the same batches as tensors of PyTorch, normalised. `chunkio.Writer` and
`chunkio.pack` write files; the program `h5pack` packs folders of images.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ._core import Batch, SparseTensor, Tensor
from ._core import version as __version__
from ._dataset import Dataset, Decode
from ._loader import Loader
from ._normalizer import Densifier, Normalizer
from .errors import Error

if TYPE_CHECKING:
    from ._writer import Writer, pack

__all__ = [
    "Batch",
    "Dataset",
    "Decode",
    "Densifier",
    "Error",
    "Loader",
    "Normalizer",
    "SparseTensor",
    "Tensor",
    "Writer",
    "__version__",
    "pack",
]


def __getattr__(name: str) -> Any:
    # NumPy takes longer to import than all the rest, and reading begins without it.
    if name in ("Writer", "pack"):
        from . import _writer

        return getattr(_writer, name)
    raise AttributeError(f"module 'chunkio' has no attribute {name!r}")
