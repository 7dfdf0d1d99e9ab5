from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any, Literal

from . import _core
from ._dataset import Dataset, require_dataset
from .errors import InvalidArgumentError, NotFoundError


class Normalizer(_core.Normalizer):
    """Crops, resizes, flips and normalises batches in one pass: (value / 255 - mean) / std.

    `normalizer(batch)` is a Tensor of its own. What happens to a sample is a function of (seed, epoch, sample) alone.
    May be called from several threads, which take turns, and be pickled.

    Args:
        dataset: whose images are meant; mean and std are its own unless given.
        dtype: "float32", "float16" or "bfloat16".
        layout: of the result: "nchw" is [B,C,H,W], "nhwc" is [B,H,W,C].
        mean, std: of value / 255, one number a channel or one for all.
        crop_height, crop_width: size of the result in pixels; 0: that of the images. At most 65535 with
            random_resized_crop.
        padding: pixels of value 0 around each image before it is cropped.
        random_crop: crop at a random place, another one for each sample and epoch; else in the middle.
        random_resized_crop: cut a random part out of each image, another one for each sample and epoch, and resize it to
            crop_height and crop_width, in the bits of Pillow and torchvision (antialiased, bilinear). Excludes
            random_crop and padding.
        scale: of random_resized_crop, the least and the largest part of the image's area.
        ratio: of random_resized_crop, the least and the largest width of the part in its heights.
        flip: flip half of the samples left to right.
        seed: of random crops and flips; None: that of the Loader which a batch is from.
        num_threads: 0: the CPUs of this process, at most 8.

    Raises:
        ValueError: an option is out of range; mean and std are neither given nor in the file.
    """

    def __init__(
        self,
        dataset: Dataset,
        *,
        dtype: Literal["float32", "float16", "bfloat16"] = "float32",
        layout: Literal["nchw", "nhwc"] = "nchw",
        mean: Sequence[float] = (),
        std: Sequence[float] = (),
        crop_height: int = 0,
        crop_width: int = 0,
        padding: int = 0,
        random_crop: bool = False,
        random_resized_crop: bool = False,
        scale: tuple[float, float] = (0.08, 1.0),
        ratio: tuple[float, float] = (3 / 4, 4 / 3),
        flip: bool = False,
        seed: int | None = None,
        num_threads: int = 0,
    ) -> None:
        options = {name: value for name, value in locals().items() if name not in ("self", "dataset", "__class__")}
        require_dataset(dataset)
        try:
            super().__init__(dataset, **options)
        except NotFoundError as error:
            raise InvalidArgumentError(str(error)) from None
        self._dataset = dataset
        self._options = options

    def __reduce__(self) -> tuple[Any, ...]:
        return functools.partial(Normalizer, **self._options), (self._dataset,)


class Densifier(_core.Densifier):
    """Makes rows of a CSR matrix dense: a Tensor [B, columns], 0 where nothing is stored.

    `densifier(batch)` takes a batch of a Loader, or a SparseTensor. Values of a column that comes twice in a row are
    added up. May be called from several threads, which take turns, and be pickled.

    Args:
        dataset: whose rows are meant.
        dtype: "float32", "float16" or "bfloat16".
        binary: 1 for each value that is stored, whatever it is; excludes the other two.
        row_sum: scale each row so that its values add up to this; None: as they are.
        log1p: log(1 + value), after row_sum.
        num_threads: 0: the CPUs of this process, at most 8.

    Raises:
        ValueError: an option is out of range, or no CSR matrix leads the dataset.
    """

    def __init__(
        self,
        dataset: Dataset,
        *,
        dtype: Literal["float32", "float16", "bfloat16"] = "float32",
        binary: bool = False,
        row_sum: float | None = None,
        log1p: bool = False,
        num_threads: int = 0,
    ) -> None:
        options = {name: value for name, value in locals().items() if name not in ("self", "dataset", "__class__")}
        require_dataset(dataset)
        if not dataset.sparse:
            raise InvalidArgumentError(f"{dataset.path} has no sparse rows; what leads it is dense already")
        super().__init__(dataset.shape[1], **options)
        self._dataset = dataset
        self._options = options

    def __reduce__(self) -> tuple[Any, ...]:
        return functools.partial(Densifier, **self._options), (self._dataset,)
