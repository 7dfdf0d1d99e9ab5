from __future__ import annotations

import itertools
import json
import operator
import os
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Any, Literal, Union

import numpy as np

from . import _core
from ._dataset import path_text
from .errors import InvalidArgumentError, MissingFileError, NotFoundError

if TYPE_CHECKING:
    import numpy.typing as npt

    # An image, and its class, its attributes or None.
    _Sample = tuple[npt.NDArray[np.uint8], Union[int, npt.NDArray[Any], None]]

# Bytes of rows that pack() gathers before it writes them.
_BLOCK_BYTES = 4 << 20


class Writer:
    """Writes a dataset file, sample block after sample block; published whole by `close`, or not at all.

        with chunkio.Writer("out.h5", num_samples=n, shape=(32, 32, 3), class_names=names) as writer:
            writer.append(images, labels)

    Until `close` there is only PATH.partial; an exception inside of `with` leaves PATH as it was. Mean, std and the
    samples of each class are computed on the way. Pixels go to disk as they come; labels and fields are held in memory
    until `close`.

    With `resume=True` the writer keeps a journal, and a run that was killed goes on where it stood: append the samples
    from `num_written` on. Not thread-safe.

    Args:
        path: the file.
        num_samples: how many will be appended.
        shape: of one image, (height, width, channels), or (channels, height, width) with layout="nchw".
        channel_order: what the channels are, such as "BGR"; by default "gray" for one, "RGB" for three, else unsaid.
        class_names: of labels 0, 1, ...
        attribute_names: labels are a table, uint8 [N,A], with these columns.
        labels: False if there are none.
        fields: further datasets parallel to the images: name -> (dtype, shape of a row).
        split: "train", "test", ...
        chunk_bytes, chunk_samples: size of a chunk, 4 MiB by default; chunk_samples wins.
        deflate_level: 1 to 9 compresses chunks, which takes decoding to read; `resume` then starts afresh.
        overwrite: replace an existing file, and what an earlier run left unfinished.
        resume: keep a journal, and go on from one.
        identity: what makes two runs the same, for `resume`: a dict of strings, numbers and booleans.

    Raises:
        FileExistsError: the file exists, or an unfinished one does; or another program writes it.
        ValueError: an option is out of range, or `resume` meets the journal of another dataset.
        OSError: the disk is full, or reports an error.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        num_samples: int,
        shape: Sequence[int],
        layout: Literal["nhwc", "nchw"] = "nhwc",
        channel_order: str | None = None,
        class_names: Sequence[str] = (),
        attribute_names: Sequence[str] = (),
        labels: bool = True,
        fields: Mapping[str, tuple[npt.DTypeLike, Sequence[int]]] | None = None,
        split: str = "",
        chunk_bytes: int = 4 << 20,
        chunk_samples: int = 0,
        deflate_level: int = 0,
        overwrite: bool = False,
        resume: bool = False,
        identity: Mapping[str, str | int | float | bool] | None = None,
    ) -> None:
        self._path = path_text(path)
        if isinstance(class_names, str) or isinstance(attribute_names, str):
            raise TypeError("class_names and attribute_names are lists of names, not one name")
        self._shape = tuple(map(operator.index, shape))
        if len(self._shape) != 3:
            raise InvalidArgumentError(f"{self._path}: shape must be that of one image, such as (32, 32, 3), got {shape}")
        height, width, channels = self._shape if layout == "nhwc" else (*self._shape[1:], self._shape[0])
        columns: dict[str, tuple[npt.DTypeLike, Sequence[int]]] = {}
        if labels:
            columns["labels"] = (np.uint8, (len(attribute_names),)) if attribute_names else (np.int64, ())
        columns.update(fields or {})
        self._num_samples = num_samples = operator.index(num_samples)
        if not 0 < num_samples < 2**63:
            raise InvalidArgumentError(f"{self._path}: num_samples must be between 1 and 2**63 - 1, got {num_samples}")
        self._columns = {
            # Pages that are not written to take no memory.
            name: np.zeros((num_samples, *row_shape), dtype)
            for name, (dtype, row_shape) in columns.items()
        }
        structure: dict[str, Any] = {
            "num_samples": num_samples,
            "height": height,
            "width": width,
            "channels": channels,
            "layout": layout,
            "channel_order": {1: "gray", 3: "RGB"}.get(channels, "") if channel_order is None else channel_order,
            "fields": [(name, str(column.dtype), list(column.shape[1:])) for name, column in self._columns.items()],
            "class_names": list(class_names),
            "attribute_names": list(attribute_names),
            "split": split,
            "chunk_bytes": chunk_bytes,
            "chunk_samples": chunk_samples,
            "deflate_level": deflate_level,
            "overwrite": overwrite,
            "resume": resume,
            "identity": json.dumps({"program": "chunkio.Writer", **(identity or {})}) if resume else "",
        }
        try:
            self._writer = _core.DatasetWriter(self._path, **structure)
        except NotFoundError as error:
            raise MissingFileError(str(error)) from None
        self._chunk = np.empty((min(self._writer.chunk_samples, num_samples), *self._shape), np.uint8)
        self._closed = False
        self._resumable = resume
        self._written = 0
        self._resumed = self._take_up()

    @property
    def num_written(self) -> int:
        """Samples appended so far, those of an earlier run included: with `resume`, go on from here."""
        return self._written

    def append(self, images: Any, labels: Any = None, **fields: Any) -> None:
        """Appends samples.

        Args:
            images: uint8 [n,H,W,C] (or [n,C,H,W], by `layout`), or one image without the first axis: anything that
                numpy.asarray or DLPack takes, in host memory.
            labels: [n], or [n,A] of attributes; a number for one image.
            **fields: the other fields by name, likewise.

        Raises:
            ValueError: another shape, dtype or number of samples than was said.
        """
        if self._closed:
            raise InvalidArgumentError(f"{self._path} was closed; nothing can be appended any more")
        block = _as_array(images)
        single = block.shape == self._shape
        if single:
            block = block[None]
        if block.shape[1:] != self._shape or block.dtype != np.uint8:
            raise InvalidArgumentError(
                f"{self._path}: images must be uint8 of shape [n,{','.join(map(str, self._shape))}], "
                f"got {block.dtype} of shape {list(block.shape)}"
            )
        count = len(block)
        if self._written + count > self._num_samples:
            raise InvalidArgumentError(
                f"{self._path}: {self._written + count} samples are more than the {self._num_samples} of num_samples"
            )
        given = dict(fields) if labels is None else {"labels": labels, **fields}
        if given.keys() != self._columns.keys():
            raise InvalidArgumentError(
                f"{self._path}: append needs {', '.join(self._columns) or 'images alone'}, "
                f"got {', '.join(given) or 'images alone'}"
            )
        rows = slice(self._written, self._written + count)
        for name, values in given.items():
            column = self._columns[name]
            array = _as_array(values)[None] if single else _as_array(values)
            if array.shape == (count, *column.shape[1:]) and not _fits(array, column.dtype):
                raise InvalidArgumentError(f"{self._path}: {name}: {column.dtype} cannot hold these numbers")
            if array.shape != (count, *column.shape[1:]) or not np.can_cast(array.dtype, column.dtype, "same_kind"):
                raise InvalidArgumentError(
                    f"{self._path}: {name} must be {column.dtype} of shape {[count, *column.shape[1:]]}, "
                    f"got {array.dtype} of shape {list(array.shape)}"
                )
            column[rows] = array
        try:
            self._put(block)
        except BaseException:
            self._abandon()
            raise

    def close(self) -> None:
        """Writes what is missing, reads the file back and publishes it. Called again, it does nothing.

        Raises ValueError if fewer samples were appended than `num_samples` says; the writer then goes on as before.
        """
        if self._closed:
            return
        if self._written < self._num_samples:
            raise InvalidArgumentError(
                f"{self._path}: {self._written} of num_samples = {self._num_samples} samples were appended"
            )
        if self._columns:
            self._writer.set_rows(self._num_samples, [_bytes_of(column) for column in self._columns.values()])
        self._closed = True
        self._writer.close()

    def __enter__(self) -> Writer:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            if kind is None:
                self.close()
            elif self._resumable and not self._closed:
                self._writer.commit()
        finally:
            self._abandon()

    def _abandon(self) -> None:
        """Removes what is unfinished; with `resume`, leaves it to be resumed."""
        self._closed = True
        self._writer.abandon()

    def _put(self, block: npt.NDArray[np.uint8]) -> None:
        size = self._writer.chunk_samples
        taken = 0
        while taken < len(block):
            chunk, filled = divmod(self._written, size)
            count = min(size - filled, len(block) - taken)
            whole = count == size
            # Whole chunks go from where they are.
            if not whole:
                self._chunk[filled : filled + count] = block[taken : taken + count]
            self._written += count
            if self._written % size == 0 or self._written == self._num_samples:
                rows = block[taken : taken + count] if whole else self._chunk[: filled + count]
                self._write_chunk(chunk, np.ascontiguousarray(rows))
            taken += count

    def _write_chunk(self, chunk: int, rows: npt.NDArray[np.uint8]) -> None:
        if chunk in self._resumed:
            return  # behind a gap that a killed run left
        first = chunk * self._writer.chunk_samples
        note = b"".join(column[first : first + len(rows)].tobytes() for column in self._columns.values())
        self._writer.write_chunk(chunk, rows, note)

    def _take_up(self) -> set[int]:
        """Labels and fields of the chunks that an earlier run wrote, which it returns, from notes in its journal."""
        resumed = self._writer.resumed()
        for chunk, num_rows, note in resumed:
            first = chunk * self._writer.chunk_samples
            begin = 0
            for column in self._columns.values():
                rows = column[first : first + num_rows]
                values = np.frombuffer(note, column.dtype, rows.size, begin)
                rows[...] = values.reshape(rows.shape)
                begin += rows.nbytes
            if first == self._written:
                self._written += num_rows
        return {chunk for chunk, _, _ in resumed}


def pack(
    dataset: Any,
    path: str | os.PathLike[str],
    *,
    num_samples: int | None = None,
    **options: Any,
) -> None:
    """Writes what a dataset of another library yields: torchvision's, Hugging Face's, a list, a generator.

    Each sample is an (image, label) pair, or a dict with "image" (or "img") and "label"; an image alone has no label. A
    label is a class number, also as an array of one, or an array of attributes, which are there where it is above 0.
    Images are anything that numpy.asarray takes as uint8 [H,W,C] or [H,W], images of Pillow included; all have the
    shape of the first. What has no length is counted while it is copied to a temporary file beside PATH.

    Args:
        dataset: anything with a length and an index, or anything iterable.
        path: the file.
        num_samples: how many samples to take, if not all.
        **options: those of `Writer`; class_names are taken from dataset.classes or dataset.features where they are.

    Raises:
        ValueError: no samples, fewer than num_samples, or what is no image; images of several shapes.
        FileExistsError, OSError: as `Writer`. An error leaves no file, but with `resume=True` what can be gone on from.
    """
    if isinstance(dataset, Mapping):
        raise InvalidArgumentError(f"this is a dict of {', '.join(map(repr, dataset))}; pass one dataset, such as a value of it")
    if "class_names" not in options and (names := _class_names(dataset)):
        options["class_names"] = names
    if num_samples is None:
        try:
            num_samples = len(dataset)
        except TypeError:
            _pack_uncounted(dataset, path_text(path), options)
            return
    if num_samples == 0:
        raise InvalidArgumentError(f"{path_text(path)}: the dataset has no samples")
    if hasattr(dataset, "__getitem__") and hasattr(dataset, "__len__"):
        count = num_samples
        if count > len(dataset):
            raise InvalidArgumentError(f"{path_text(path)}: the dataset has {len(dataset)} of num_samples = {count} samples")
        _pack_counted(lambda first: (_split(dataset[row]) for row in range(first, count)), path, count, options)
    else:
        samples = map(_split, dataset)
        # It cannot go back: the first sample is gone when the others are asked for.
        _pack_counted(lambda first: itertools.islice(samples, max(first - 1, 0), None), path, num_samples, options)


def _pack_counted(
    samples_from: Callable[[int], Iterator[_Sample]],
    path: str | os.PathLike[str],
    num_samples: int,
    options: dict[str, Any],
) -> None:
    """`samples_from(0)` is asked for the first sample; then, for all others, from one that an earlier run left on."""
    first = next(samples_from(0), None)
    if first is None:
        raise InvalidArgumentError(f"{os.fsdecode(path)}: the dataset has no samples")
    image, label = first
    options = {"labels": label is not None, **options}
    if isinstance(label, np.ndarray):
        options.setdefault("attribute_names", [str(column) for column in range(label.size)])
    with Writer(path, num_samples=num_samples, shape=image.shape, **options) as writer:
        images: list[npt.NDArray[np.uint8]] = []
        labels: list[Any] = []

        def flush() -> None:
            if images:
                writer.append(np.stack(images), None if labels[0] is None else np.asarray(labels))
            images.clear()
            labels.clear()

        begin = writer.num_written
        samples = samples_from(max(begin, 1))
        if begin == 0:
            samples = itertools.chain([first], samples)
        for number, (image, label) in zip(range(begin, num_samples), samples):
            if image.shape != first[0].shape:
                raise InvalidArgumentError(
                    f"{os.fsdecode(path)}: image {number} has shape {list(image.shape)}, those before "
                    f"{list(first[0].shape)}; resize them, or pack a folder with h5pack, which does"
                )
            if (label is None) != (first[1] is None) or getattr(label, "shape", ()) != getattr(first[1], "shape", ()):
                raise InvalidArgumentError(
                    f"{os.fsdecode(path)}: the label of image {number} is {label!r}, that of the first was {first[1]!r}"
                )
            images.append(image)
            labels.append(label)
            if len(images) * image.nbytes >= _BLOCK_BYTES:
                flush()
        flush()


def _pack_uncounted(dataset: Iterable[Any], path: str, options: dict[str, Any]) -> None:
    labels: list[Any] = []
    shape: tuple[int, ...] | None = None
    with tempfile.TemporaryFile(dir=os.path.dirname(path) or ".") as spool:
        for image, label in map(_split, dataset):
            if shape is not None and image.shape != shape:
                raise InvalidArgumentError(
                    f"{path}: image {len(labels)} has shape {list(image.shape)}, those before {list(shape)}"
                )
            shape = image.shape
            spool.write(image.tobytes())
            labels.append(label)
        if shape is None:
            raise InvalidArgumentError(f"{path}: the dataset has no samples")
        size, one_shape = int(np.prod(shape)), shape

        def samples_from(first: int) -> Iterator[_Sample]:
            spool.seek(first * size)
            for label in labels[first:]:
                yield np.frombuffer(spool.read(size), np.uint8).reshape(one_shape), label

        _pack_counted(samples_from, path, len(labels), options)


def _split(sample: Any) -> _Sample:
    """Image and label of one sample."""
    label: Any = None
    if isinstance(sample, Mapping):
        names = [name for name in ("image", "img", "pixel_values") if name in sample]
        if not names:
            raise InvalidArgumentError(f"a sample has no 'image'; it has {', '.join(map(str, sample))}")
        image = sample[names[0]]
        label = next((sample[name] for name in ("label", "labels", "fine_label") if name in sample), None)
    elif isinstance(sample, (tuple, list)):
        image, label = sample[0], sample[1] if len(sample) > 1 else None
    else:
        image = sample
    array = _as_array(image)
    if array.ndim == 2:
        array = array[:, :, None]
    if array.dtype != np.uint8 or array.ndim != 3:
        raise InvalidArgumentError(
            f"an image must be uint8 [H,W,C], got {array.dtype} {list(array.shape)}"
            + ("" if array.dtype == np.uint8 else "; leave normalising to the Loader")
        )
    if label is None or isinstance(label, (int, np.integer)):
        return array, None if label is None else int(label)
    values = _as_array(label)
    if values.size == 1 and values.ndim <= 1 and values.dtype.kind in "iub":
        return array, int(values.item())
    if values.ndim != 1 or values.dtype.kind not in "iubf":
        raise InvalidArgumentError(f"a label must be a class number or an array of attributes, got {label!r}")
    return array, (values > 0).astype(np.uint8)


def _class_names(dataset: Any) -> list[str]:
    names = getattr(dataset, "classes", None)
    if names is None:
        features = getattr(dataset, "features", None) or {}
        label = next((features[name] for name in ("label", "labels", "fine_label") if name in features), None)
        names = getattr(label, "names", None)
    return [str(name) for name in names] if names is not None else []


def _fits(array: npt.NDArray[Any], dtype: np.dtype[Any]) -> bool:
    """Whether the numbers stay what they are; those of other kinds are refused by their dtype."""
    if array.dtype.kind not in "iu" or dtype.kind not in "iu" or array.size == 0:
        return True
    limits = np.iinfo(dtype)
    return int(array.min()) >= limits.min and int(array.max()) <= limits.max


def _as_array(values: Any) -> npt.NDArray[Any]:
    if not hasattr(values, "__array__") and not hasattr(values, "__array_interface__") and hasattr(values, "__dlpack__"):
        return np.from_dlpack(values)
    return np.asarray(values)


def _bytes_of(column: npt.NDArray[Any]) -> npt.NDArray[np.uint8]:
    return column.reshape(-1).view(np.uint8)
