"""Batches as tensors of PyTorch: on the CPU, or on a GPU; uint8 as stored, or normalised.

    import chunkio.torch

    train = chunkio.torch.DataLoader("train.h5", batch_size=256, seed=7, device="cuda:0")
    for images, labels in train:
        ...
"""

from __future__ import annotations

import json
import numbers
import os
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from typing import TYPE_CHECKING, Any, Literal, Union

import torch
from torch.utils.dlpack import from_dlpack

from . import _core
from ._core import Batch
from ._dataset import Dataset, sides
from ._epochs import Epochs
from ._loader import Loader
from ._normalizer import Densifier, Normalizer
from .errors import InvalidArgumentError, NotFoundError, TimedOutError

__all__ = ["DataLoader", "IterableDataset"]

if TYPE_CHECKING:
    # Images, labels, fields by name, and row numbers.
    _Parts = tuple[torch.Tensor, Union[torch.Tensor, None], dict[str, torch.Tensor], torch.Tensor]

_DTYPES = {torch.float32: "float32", torch.float16: "float16", torch.bfloat16: "bfloat16"}


class DataLoader:
    """The batches of a dataset as (images, labels), ready to be fed to a network.

    Takes the place of torch.utils.data.DataLoader: no worker processes, no sampler, no collate function. Each `for` is
    the next epoch; `set_epoch` chooses another, and with the same seed every run delivers the same. What is delivered
    may be held as long as one likes. `state_dict` inside an epoch is exact. Threads, fork and
    pickle: as `chunkio.Loader`.

    A batch is (images, labels): images float32, float16 or bfloat16 [B,C,H,W] on `device`, or uint8 as stored; labels
    int64 [B], uint8 [B,A] of a table of attributes, or None of a dataset without labels. On the CPU the next batch is
    made while one is used. Rows of a CSR matrix come in place of images: dense [B, columns], or as torch.sparse_csr
    with dtype None.

    Args:
        dataset: a `chunkio.Dataset`, or the path of one.
        batch_size: samples a batch, of this rank.
        seed: of the order, of crops and of flips.
        device: "cpu", or "cuda:0": then images are normalised there, on PyTorch's current stream.
        dtype: torch.float32, torch.float16 or torch.bfloat16: (value / 255 - mean) / std. None: as stored, which
            `device` "cpu" alone has; so are other numbers than images delivered.
        memory_format: images are [B,C,H,W]; torch.channels_last keeps them as [B,H,W,C] in memory. With dtype None
            images have the shape that the file has.
        mean, std: of value / 255, one number a channel or one for all. Default: those of the file.
        crop_size: (height, width) of the result, or one number for both.
        padding, random_crop, random_resized_crop, scale, ratio, flip: as in `chunkio.Normalizer`.
        binary, row_sum, log1p: of rows of a CSR matrix, as in `chunkio.Densifier`.
        distributed: "auto" takes rank and world size from torch.distributed, else from what the launcher has set
            (torchrun, Open MPI, PMI, Slurm), else this is the only reader; False: the only reader.
        uneven: where ranks differ by one sample: "pad", "drop" or "exact".
        sample_ids: deliver as the last element of a batch its row numbers in the file, int64 [B] on the CPU.
        transform: called with the parts of each batch, (images, labels, ...); what it returns is delivered.
        device_options: of a CUDA device: echo, echo_buffer_batches, resident ("auto", "off", "require"), resident_share,
            pin_memory ("require", "prefer", "off"), max_held, label_dtype.
        num_threads, window_bytes, drop_last, lanes, fields, ...: as in `chunkio.Loader`; a batch of a loader with
            `fields` is (images, labels, {name: tensor}).
        memory_budget: bytes for reading, as in `chunkio.Loader`. What is delivered on the CPU in `dtype`, dense rows or
            normalised images, takes memory beside it: the batch in use, the next one, and those that are kept.

    Raises:
        ValueError: an option is out of range, or there is no mean to normalise by.
        TypeError: there is no such option.
        FileNotFoundError: no such file.
        chunkio.Error: the file is damaged; other numbers than images are to be normalised; there is no such device,
            or no CUDA in this build.
    """

    def __init__(
        self,
        dataset: Dataset | str | os.PathLike[str],
        batch_size: int = 256,
        *,
        seed: int = 0,
        device: str | torch.device = "cpu",
        dtype: torch.dtype | None = torch.float32,
        memory_format: torch.memory_format = torch.contiguous_format,
        mean: Sequence[float] | float | None = None,
        std: Sequence[float] | float | None = None,
        crop_size: int | tuple[int, int] | None = None,
        padding: int = 0,
        random_crop: bool = False,
        random_resized_crop: bool = False,
        scale: tuple[float, float] = (0.08, 1.0),
        ratio: tuple[float, float] = (3 / 4, 4 / 3),
        flip: bool = False,
        binary: bool = False,
        row_sum: float | None = None,
        log1p: bool = False,
        distributed: Literal["auto"] | bool = "auto",
        uneven: Literal["pad", "drop", "exact"] = "pad",
        sample_ids: bool = False,
        transform: Callable[..., Any] | None = None,
        num_threads: int = 0,
        fields: Sequence[str] = (),
        device_options: dict[str, Any] | None = None,
        **loader_options: Any,
    ) -> None:
        if isinstance(fields, str):
            raise TypeError(f"fields must be a list of names, got {fields!r}")
        if transform is not None and not callable(transform):
            raise TypeError(f"transform must be callable, got {transform!r}")
        self._dataset = dataset if isinstance(dataset, Dataset) else Dataset(dataset)
        self._device = torch.device(device)
        self._batch_size = batch_size
        self._transform = transform
        self._fields = tuple(fields)
        self._sample_ids = sample_ids
        if dtype is not None and dtype not in _DTYPES:
            raise InvalidArgumentError(
                f"dtype must be torch.float32, torch.float16, torch.bfloat16 or None, got {dtype}"
            )
        if memory_format not in (torch.contiguous_format, torch.channels_last):
            raise InvalidArgumentError(
                f"memory_format must be torch.contiguous_format or torch.channels_last, got {memory_format}"
            )
        self._channels_last = memory_format == torch.channels_last
        rank, world_size = _ranks(distributed)
        options: dict[str, Any] = {
            "batch_size": batch_size,
            "seed": seed,
            "rank": rank,
            "world_size": world_size,
            "uneven": uneven,
            "num_threads": num_threads,
            "fields": self._fields,
            **loader_options,
        }
        height, width = (0, 0) if crop_size is None else sides("crop_size", crop_size)
        normalize: dict[str, Any] = {
            "layout": "nhwc" if self._channels_last else "nchw",
            "mean": _numbers(mean),
            "std": _numbers(std),
            "crop_height": height,
            "crop_width": width,
            "padding": padding,
            "random_crop": random_crop,
            "random_resized_crop": random_resized_crop,
            "scale": scale,
            "ratio": ratio,
            "flip": flip,
            "seed": seed,
        }
        scaled = mean is not None or std is not None
        of_images = scaled or height or padding or random_crop or random_resized_crop or flip
        of_sparse_rows = binary or row_sum is not None or log1p
        if self._dataset.sparse and (of_images or self._channels_last):
            raise InvalidArgumentError(
                f"{self._dataset.path} has rows of a CSR matrix: mean, std, crops, flips, channels_last are of images"
            )
        if of_sparse_rows and not self._dataset.sparse:
            raise InvalidArgumentError(
                f"{self._dataset.path} has no sparse rows, which binary, row_sum and log1p are of"
            )
        if dtype is None and self._device.type != "cpu":
            raise InvalidArgumentError(f"device {self._device} delivers normalised images: dtype cannot be None")
        if dtype is None and (of_images or of_sparse_rows):
            raise InvalidArgumentError(
                "dtype None delivers what is stored: mean, std, crops, flips, binary, row_sum and log1p need a dtype"
            )
        if dtype is not None:
            normalize["dtype"] = _DTYPES[dtype]
        dense: dict[str, Any] = {"dtype": normalize.get("dtype"), "binary": binary, "row_sum": row_sum, "log1p": log1p}
        self._loader: Loader | _MadeAhead | _DeviceLoader
        if self._device.type == "cuda":
            made = {"dense": dense} if self._dataset.sparse else normalize
            self._loader = _DeviceLoader(self._dataset, self._device, options, {**made, **(device_options or {})})
            return
        if self._device.type != "cpu":
            raise InvalidArgumentError(f'device must be "cpu" or a CUDA device, got {self._device}')
        if device_options:
            raise InvalidArgumentError("device_options are for a CUDA device")
        self._loader = Loader(self._dataset, **options)
        if dtype is None:
            return
        make: Normalizer | Densifier
        if self._dataset.sparse:
            # Leaves one CPU to the thread that trains: few threads write rows as fast as memory takes them.
            threads = num_threads or max(1, min(8, len(os.sched_getaffinity(0))) - 1)
            make = Densifier(self._dataset, num_threads=threads, **dense)
        else:
            make = Normalizer(self._dataset, num_threads=num_threads, **normalize)
        self._loader = _MadeAhead(self._loader, make, self._fields)

    @property
    def dataset(self) -> Dataset:
        """What it reads."""
        return self._dataset

    @property
    def batch_size(self) -> int:
        """Samples a batch, of this rank."""
        return self._batch_size

    def __len__(self) -> int:
        return len(self._loader)

    def set_epoch(self, epoch: int) -> None:
        """The next `for` is this epoch, or goes on in it: see `chunkio.Loader`."""
        self._loader.set_epoch(epoch)

    def __iter__(self) -> Iterator[Any]:
        if isinstance(self._loader, Loader):
            return map(self._as_stored, iter(self._loader))
        return map(self._shape, iter(self._loader))

    def _as_stored(self, batch: Batch) -> Any:
        rows = batch.leading.to_torch() if self._dataset.sparse else from_dlpack(batch.leading)
        return self._shape(_parts(batch, rows, self._fields))

    def _shape(self, parts: _Parts) -> Any:
        images, labels, fields, sample_ids = parts
        if images.is_floating_point() and self._channels_last:
            images = images.permute(0, 3, 1, 2)
        delivered: tuple[Any, ...] = (images, labels)
        if self._fields:
            delivered += (fields,)
        if self._sample_ids:
            delivered += (sample_ids,)
        return delivered if self._transform is None else self._transform(*delivered)

    def state_dict(self) -> dict[str, Any]:
        """Where it stands: plain JSON types, equal on all ranks that have taken equally many batches."""
        return self._loader.state_dict()

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Goes on there, exactly; with another number of ranks, too, if `lanes` and the global batch are equal."""
        self._loader.load_state_dict(state)

    def stats(self) -> dict[str, Any]:
        """What was delivered and what it cost: see `chunkio.Loader`. Seconds are wall time."""
        return self._loader.stats()

    def report(self) -> str:
        """What limits, and what would help: a sentence a line."""
        return self._loader.report()

    def close(self) -> None:
        """Stops reading and gives the memory back; what is held stays valid."""
        self._loader.close()


# Together a second: a program that ends waits for what is made ahead.
_LOOKS_AHEAD = 500
_SECONDS_BETWEEN_LOOKS = 0.002


class _NotReadError(Exception):
    """What was to be made ahead had not been read."""


class _MadeAhead(Epochs["_Parts"]):
    """What a Normalizer or a Densifier makes of the batches of a loader: the next one is made while one is used."""

    def __init__(self, loader: Loader, make: Normalizer | Densifier, fields: Sequence[str]) -> None:
        super().__init__(loader._loader)
        self._loader = loader
        self._make = make
        self._fields = fields
        self._maker = ThreadPoolExecutor(1, "chunkio make")
        self._ahead: Future[_Parts | None] | None = None
        self._wanted = threading.Event()  # somebody waits for what is made ahead
        self._position = (0, 0)  # epoch, and batches of it that were delivered

    def __iter__(self) -> Iterator[_Parts]:
        return self._tensors(self._begin())

    def _tensors(self, turn: int) -> Iterator[_Parts]:
        while (parts := self._take(turn)) is not None:
            yield parts
            del parts

    def _begin(self) -> int:
        self._rest()
        turn = super()._begin()
        self._go_on()
        return turn

    def _restore(self, state: str) -> None:
        self._rest()
        self._loader._restore(state)
        self._core = self._loader._loader  # another one, if the state is of another version of the order
        self._go_on()

    def _rest(self) -> None:
        """Waits until nothing more is taken from the loader. What was made ahead comes next all the same."""
        self._core.position()  # raises in a forked child, which has no thread that makes anything
        if self._ahead is not None:
            self._wanted.set()
            wait([self._ahead])

    def _go_on(self) -> None:
        """Nothing that was made ahead comes next."""
        self._ahead = None
        self._position = self._core.position()

    def _next(self) -> _Parts | None:
        self._core.position()  # raises in a forked child, which has no thread that makes anything
        self._wanted.set()
        # If this is interrupted, the parts are still ahead.
        while True:
            if self._ahead is None:
                self._ahead = self._maker.submit(self._parts, self._loader._next())
            try:
                parts = self._ahead.result()
                break
            except _NotReadError:
                self._ahead = None
        if parts is None:
            return None
        self._ahead = self._look_ahead()
        self._position = (self._position[0], self._position[1] + 1)
        return parts

    def _look_ahead(self) -> Future[_Parts | None]:
        self._wanted.clear()
        return self._maker.submit(self._make_ahead)

    def _make_ahead(self) -> _Parts | None:
        """Makes what comes next, as soon as it has been read. If the consumer waits for it by then, the consumer asks the
        loader itself, where it can be interrupted and its time counts as waiting for batches."""
        for _ in range(_LOOKS_AHEAD):
            try:
                return self._parts(self._loader._loader.next(wait=False))
            except TimedOutError:
                if self._wanted.wait(_SECONDS_BETWEEN_LOOKS):
                    break
        raise _NotReadError

    def _parts(self, batch: Batch | None) -> _Parts | None:
        return None if batch is None else _parts(batch, from_dlpack(self._make(batch)), self._fields)

    def _place(self) -> str:
        return self._core.state_at(*self._position)

    def stats(self) -> dict[str, Any]:
        return self._loader.stats()

    def __reduce__(self) -> tuple[Any, ...]:
        return _MadeAhead, (self._loader, self._make, self._fields), self.state_dict()


class _DeviceLoader(Epochs[_core.DeviceBatch]):
    """Batches in the memory of a CUDA device, on PyTorch's current stream."""

    def __init__(
        self, dataset: Dataset, device: torch.device, options: dict[str, Any], device_options: dict[str, Any]
    ) -> None:
        # One is used while the next one is made, and some may be kept before what is kept is copied.
        self._max_held = device_options.setdefault("max_held", 4)
        device_options["device"] = torch.cuda.current_device() if device.index is None else device.index
        try:
            self._loader = _core.DeviceLoader(dataset, options, device_options)
        except NotFoundError as error:
            raise InvalidArgumentError(str(error)) from None
        super().__init__(self._loader)
        self._device = device
        self._fields: Sequence[str] = options["fields"]
        self._arguments = (dataset, device, options, device_options)

    def __iter__(self) -> Iterator[_Parts]:
        return self._tensors(self._begin())

    def _next(self) -> _core.DeviceBatch | None:
        return self._loader.next(torch.cuda.current_stream(self._device).cuda_stream)

    def _tensors(self, turn: int) -> Iterator[_Parts]:
        while (batch := self._take(turn)) is not None:
            images = from_dlpack(batch.leading)
            # A program that keeps batches gets copies, so that one buffer is always left to go on with.
            if self._loader.num_held >= self._max_held:
                images = images.clone()
            parts = _parts(batch, images, self._fields)
            del batch, images
            yield parts
            del parts

    def stats(self) -> dict[str, Any]:
        stats: dict[str, Any] = json.loads(self._loader.stats_json())
        return stats

    def __reduce__(self) -> tuple[Any, ...]:
        return _DeviceLoader, self._arguments, self.state_dict()


class IterableDataset(torch.utils.data.IterableDataset[Any]):
    """A `DataLoader` for programs that must keep torch.utils.data.DataLoader.

        loader = torch.utils.data.DataLoader(chunkio.torch.IterableDataset("train.h5"), batch_size=None, num_workers=0)

    Yields batches, so `batch_size` is None there; reading has threads of its own, so `num_workers` is 0. Takes what
    `DataLoader` takes, and passes on `set_epoch`, `state_dict` and `load_state_dict`. Raises RuntimeError in a worker.
    """

    def __init__(self, dataset: Dataset | str | os.PathLike[str], batch_size: int = 256, **options: Any) -> None:
        self._loader = DataLoader(dataset, batch_size, **options)
        self.set_epoch = self._loader.set_epoch
        self.state_dict = self._loader.state_dict
        self.load_state_dict = self._loader.load_state_dict

    def __iter__(self) -> Iterator[Any]:
        if torch.utils.data.get_worker_info() is not None:
            raise RuntimeError(
                "chunkio reads with threads of its own: give torch.utils.data.DataLoader num_workers=0, or use "
                "chunkio.torch.DataLoader in its place"
            )
        return iter(self._loader)

    def __len__(self) -> int:
        return len(self._loader)


def _parts(batch: Batch | _core.DeviceBatch, images: torch.Tensor, fields: Sequence[str]) -> _Parts:
    # Copies: a label that is kept must not keep the images of its batch.
    labels = None if batch.labels is None else from_dlpack(batch.labels).clone()
    named = {name: from_dlpack(batch[name]).clone() for name in fields}
    return images, labels, named, from_dlpack(batch.sample_ids).clone()


def _ranks(distributed: Literal["auto"] | bool) -> tuple[int, int]:
    if distributed is False:
        return 0, 1
    if distributed not in ("auto", True):
        raise InvalidArgumentError(f'distributed must be "auto", True or False, got {distributed!r}')
    if torch.distributed.is_available() and torch.distributed.is_initialized():
        return torch.distributed.get_rank(), torch.distributed.get_world_size()
    ranks = _core.find_ranks()
    if ranks is None and distributed is True:
        raise InvalidArgumentError(
            "distributed=True, but torch.distributed is not initialized and no launcher has set ranks: start with "
            "torchrun, mpirun or srun"
        )
    return ranks or (0, 1)


def _numbers(values: Sequence[float] | float | None) -> list[float]:
    if values is None:
        return []
    if isinstance(values, numbers.Real) or getattr(values, "ndim", 1) == 0:
        return [float(values)]  # type: ignore[arg-type]
    return [float(value) for value in values]  # type: ignore[union-attr]
