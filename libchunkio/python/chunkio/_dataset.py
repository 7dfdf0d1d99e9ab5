from __future__ import annotations

import dataclasses
import functools
import json
import numbers
import operator
import os
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, Literal, SupportsIndex, overload

from . import _core
from .errors import InvalidArgumentError, MissingFileError, NotFoundError

if TYPE_CHECKING:
    import numpy.typing as npt

    Row = npt.NDArray[Any]


def sides(option: str, size: int | Sequence[int]) -> tuple[int, int]:
    """Height and width that an option gives as (height, width), or as one number for both."""
    if isinstance(size, numbers.Integral) and not isinstance(size, bool):
        return int(size), int(size)
    if not isinstance(size, Sequence) or isinstance(size, (str, bytes)) or len(size) != 2:
        raise InvalidArgumentError(f"{option} must be (height, width) or one number, got {size!r}")
    return size[0], size[1]


@dataclasses.dataclass(frozen=True)
class Decode:
    """How images that are stored encoded, in sizes of their own, become samples of one size while they are read.

    Pixels are those of Pillow and torchvision (Resize, CenterCrop, RandomResizedCrop; antialiased, bilinear), bit for
    bit. Random crops depend on the seed of the Loader, the epoch and the sample, and on nothing else.

    Args:
        size: of a sample in pixels: (height, width), or one number for both.
        crop: "center" cuts the middle out, after the shorter side is resized; "random_resized" a part of random place,
            area and ratio, another one each epoch; "whole" takes all, and may change the ratio.
        shorter_side: of "center", the pixels of the shorter side that the middle is cut out of. None: 8/7 of the larger
            side of `size`, as 256 for 224.
        scale: of "random_resized", the least and the largest part of the image's area.
        ratio: of "random_resized", the least and the largest width of the part in its heights.
        gray: one channel instead of RGB.
        exact: False lets JPEG images of which few pixels are wanted be decoded at a half, a quarter or an eighth of
            their size, which is faster and gives slightly other pixels.
    """

    size: int | tuple[int, int] = 224
    crop: Literal["center", "random_resized", "whole"] = "center"
    shorter_side: int | None = None
    scale: tuple[float, float] = (0.08, 1.0)
    ratio: tuple[float, float] = (3 / 4, 4 / 3)
    gray: bool = False
    exact: bool = True

    def _options(self) -> dict[str, Any]:
        height, width = sides("size", self.size)
        return {
            "height": height, "width": width, "crop": self.crop, "shorter_side": self.shorter_side or 0,
            "scale": self.scale, "ratio": self.ratio, "gray": self.gray, "exact": self.exact,
        }


class Dataset(_core.Dataset):
    """An open dataset: one HDF5 file, or several that a name such as "train-*-of-00008.h5" stands for.

    It is a set of arrays that run parallel: one leads, images (uint8 pixels, or encoded), any numbers [N,...] or a CSR
    matrix, the others are labels and fields. `data[7]` is one image (or row) and its label, `data[100:200]` are arrays of
    them; both are copies. Reading row by row is slow: train with a `Loader`. May be used from several threads.

    Args:
        path: the file, or its address: https://host/train.h5, s3://bucket/train.h5 (see "Object storage" in the guide).
        images: path of what leads inside the file: images, any numbers [N,...], or the group of a CSR matrix. Default:
            "images", else the CSR matrix "X" (AnnData) or "matrix" (10x Genomics), else the only uint8 dataset with four
            axes, else the only one with three; in a file without images, the only dataset of numbers with two axes or
            more.
        labels: path of the label dataset. Default: "labels" (or "label") if there is one that can be labels.
        layout: axis order of the images, if the file does not say: "nhwc" or "nchw".
        decode: of encoded images, how they become samples of one size. Without, such a file can be looked at, and read
            with read_encoded(), but no Loader reads it. Refused for other files.
        columns_as_rows: take a CSC matrix (`encoding-type` "csc_matrix"), which is refused otherwise, as its transpose: a
            sample is a column of it. A CSR matrix is delivered as it is.
        allow_external: read also what lies outside of the file, through links and virtual datasets. Only for files
            you trust.
        probe: path of the program `chunkio-probe`, which looks at each file first: libhdf5 crashes on some damaged
            files, which are then an error. "": none does.
        remote_requests: of an address: requests of 2 MiB that a Loader has under way at the same time.
        remote_timeout: of an address: seconds for which a request that brings nothing is tried again.
        remote_cache: of an address: a folder on a local disk that keeps downloaded bytes for later epochs, other runs
            and other processes of this user. "": none.
        remote_cache_bytes: that all files in that folder may take. Those that no process has open make room for others.
        remote_index: of an address: a local file that `h5pack index` wrote of these files, so that each opens by one
            request. "": none.

    Raises:
        FileNotFoundError: no such file, or one of several is missing.
        LookupError: no such dataset in it.
        chunkio.Error: the file is damaged, or several datasets in it may lead: the message names them.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        images: str = "",
        labels: str = "",
        layout: Literal["nhwc", "nchw"] | None = None,
        decode: Decode | None = None,
        columns_as_rows: bool = False,
        allow_external: bool = False,
        probe: str = "",
        remote_requests: int = 32,
        remote_timeout: float = 60.0,
        remote_cache: str | os.PathLike[str] = "",
        remote_cache_bytes: int = 64 << 30,
        remote_index: str | os.PathLike[str] = "",
    ) -> None:
        options = {
            "images": images,
            "labels": labels,
            "layout": layout,
            "columns_as_rows": columns_as_rows,
            "allow_external": allow_external,
            "probe": probe,
            "remote_requests": remote_requests,
            "remote_timeout": remote_timeout,
            "remote_cache": os.fspath(remote_cache),
            "remote_cache_bytes": remote_cache_bytes,
            "remote_index": os.fspath(remote_index),
        }
        name = path_text(path)
        if decode is not None and not isinstance(decode, Decode):
            raise TypeError(f"decode must be a chunkio.Decode, got {decode!r}")
        try:
            super().__init__(name, decode=decode and decode._options(), **options)
        except NotFoundError as error:
            if os.path.exists(path):
                raise
            raise MissingFileError(str(error)) from None
        self._options: dict[str, Any] = {**options, "decode": decode}

    @property
    def info(self) -> dict[str, Any]:
        """Everything that `h5pack info --json` says. Reads the labels."""
        info: dict[str, Any] = json.loads(self._info_json())
        return info

    @overload
    def __getitem__(self, rows: SupportsIndex) -> tuple[Row, Any]: ...
    @overload
    def __getitem__(self, rows: slice) -> tuple[Row, npt.NDArray[Any] | None]: ...
    def __getitem__(self, rows: SupportsIndex | slice) -> tuple[Row, Any]:
        """One image [H,W,C] (or [C,H,W]) and its label, an int; or images [n,H,W,C] and labels [n] of a slice.

        Where other numbers lead, they are in the place of the images; rows of a CSR matrix are a SparseTensor, also
        where it is one, and a slice of them has no step. Labels that are a table of attributes are uint8
        arrays; without labels there is None. Raises IndexError.
        """
        if isinstance(rows, slice):
            start, stop, step = rows.indices(len(self))
            if step == 1:
                return self._rows(start, max(stop - start, 0))
            if self.sparse:
                raise ValueError("rows of a sparse matrix are read side by side; leave out the step")
            picked = [self._rows(row, 1) for row in range(start, stop, step)]
            if not picked:
                return self._rows(0, 0)
            import numpy as np

            images = np.concatenate([image for image, _ in picked])
            labels = None if picked[0][1] is None else np.concatenate([label for _, label in picked])
            return images, labels
        row = operator.index(rows)
        if not -len(self) <= row < len(self):
            raise IndexError(f"{self.path} has {len(self)} samples, and no sample {row}")
        images, labels = self._rows(row % len(self), 1)
        first = images if self.sparse else images[0]
        if labels is None:
            return first, None
        return first, int(labels[0]) if labels.ndim == 1 else labels[0]

    def __iter__(self) -> Iterator[tuple[Row, Any]]:
        return (self[row] for row in range(len(self)))

    def read_field(self, name: str, rows: slice = slice(None)) -> npt.NDArray[Any]:
        """Rows of a field, of the labels or of what leads, by its name: [n,...] of its dtype, as a copy.

        Raises LookupError if there is no such field, ValueError for a slice with a step.
        """
        import numpy as np

        if not isinstance(name, str) or not isinstance(rows, slice):
            raise TypeError(f"read_field takes a name and a slice, got {name!r} and {rows!r}")
        start, stop, step = rows.indices(len(self))
        if step != 1:
            raise ValueError("read_field reads neighbouring rows; take every n-th of the array")
        return np.asarray(self._read_field(name, start, max(stop - start, 0)))

    def _rows(self, first: int, count: int) -> tuple[Any, npt.NDArray[Any] | None]:
        import numpy as np

        images = self._read_sparse(first, count) if self.sparse else np.asarray(
            self._read_field(self.leading_name, first, count)
        )
        if self.label_name is None:
            return images, None
        return images, np.asarray(self._read_field(self.label_name, first, count))

    def __reduce__(self) -> tuple[Any, ...]:
        return functools.partial(Dataset, **self._options), (self.path,)

    def __repr__(self) -> str:
        return f"<chunkio.Dataset {self.path!r} {list(self.shape)}>"


def path_text(path: str | os.PathLike[str]) -> str:
    name = os.fsdecode(path)
    try:
        name.encode()
    except UnicodeEncodeError:
        raise InvalidArgumentError(f"{name!r} is not UTF-8; make a link with another name") from None
    return name


def require_dataset(dataset: Any) -> None:
    if not isinstance(dataset, _core.Dataset):
        raise TypeError(f"dataset must be a chunkio.Dataset, got {dataset!r}; chunkio.Dataset(path) opens a file")
