from __future__ import annotations

import functools
import json
import warnings
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, Literal, TypedDict

from . import _core
from ._core import Batch
from ._dataset import Dataset, require_dataset
from ._epochs import Epochs, epoch_number

if TYPE_CHECKING:
    import numpy.typing as npt

Order = Literal["chunk_shuffled", "sequential", "random"]
Uneven = Literal["pad", "drop", "exact"]
Source = Literal["auto", "scatter", "hdf5", "mapped", "direct"]
Disk = Literal["hdd", "sata-ssd", "nvme", "nfs", "cloud-volume", "object-storage"]


class DiskLimit(TypedDict, total=False):
    """A simulated slower disk: bytes_per_second, request_seconds and queue_depth, 0 without a limit."""

    bytes_per_second: float
    request_seconds: float
    queue_depth: int


class Loader(Epochs[Batch]):
    """Delivers a dataset as shuffled batches of what it holds, epoch by epoch.

    Each `for` over it is the next epoch, beginning with 0; `set_epoch` chooses another. `len(loader)` is the number of
    batches of an epoch for this rank. Row groups are read once an epoch, in random order, by threads of its own; no
    worker processes. Batches may be held as long as one likes. Memory: at most `memory_budget` bytes, and what is held
    beyond `max_held` batches.

    May be used from several threads, which take turns. In a forked child every call raises `chunkio.Error`; a pickled
    Loader opens anew where it stood.

    Args:
        dataset: what to read.
        batch_size: samples a batch, of this rank.
        seed: of the order.
        order: "chunk_shuffled", chunks in random order and samples mixed within windows of them; "sequential"; or
            "random", one permutation of all samples.
        drop_last: leave out the last, smaller batch.
        rank, world_size: this reader, and how many there are.
        lanes: parts the order is cut into, so that other world sizes deliver the same global batches; 0: world_size.
        uneven: where ranks differ by one sample: "pad" repeats one, "drop" leaves one out, "exact" does neither.
        window_bytes: bytes of the row groups that are mixed together. Part of the order.
        order_version: the newest version of the order that is wanted. 2 merges chunks of less than 1 MiB into groups;
            other files have the order of version 1 in both. `load_state_dict` takes it from the state.
        fields: names of further datasets to deliver, as batch["name"].
        rows: deliver only these: a slice, row numbers in any order, or a mask of all rows.
        only_labels: deliver only samples with one of these labels.
        verify: compare stored digests "off", in the "first_epoch" or "always". "automatic": always where whole chunks
            of a remote file come, else off. Of a remote file, what does not match is asked for again.
        on_error: damage "raise"s, or "skip"s the samples that it concerns.
        num_threads: 0: the CPUs of this process, at most 8.
        prefetch_depth: batches kept complete ahead, at least.
        max_held: batches held before further ones are delivered as copies.
        memory_budget: bytes.
        source: how bytes come from the file; "auto" finds out what is fastest.
        direct_io: bypass the page cache.
        resident: "host" keeps all images in memory after the first epoch.
        num_epochs: the epoch after which nothing is prefetched.
        disk_limit: read as if from a slower disk, named or by its figures.

    Raises:
        ValueError: an option is out of range, or contradicts another.
        MemoryError: the budget is too small; the message names the least that would do.
    """

    def __init__(
        self,
        dataset: Dataset,
        *,
        batch_size: int = 256,
        seed: int = 0,
        order: Order = "chunk_shuffled",
        drop_last: bool = False,
        rank: int = 0,
        world_size: int = 1,
        lanes: int = 0,
        uneven: Uneven = "pad",
        window_bytes: int = 256 << 20,
        order_version: int = 2,
        fields: Sequence[str] = (),
        rows: slice | Sequence[int] | npt.NDArray[Any] | None = None,
        only_labels: Sequence[int] = (),
        verify: Literal["off", "first_epoch", "always", "automatic"] = "automatic",
        on_error: Literal["raise", "skip"] = "raise",
        num_threads: int = 0,
        prefetch_depth: int = 4,
        max_held: int = 4,
        memory_budget: int = 1 << 30,
        source: Source = "auto",
        direct_io: bool = False,
        resident: Literal["none", "host"] = "none",
        num_epochs: int | None = None,
        disk_limit: DiskLimit | Disk | None = None,
    ) -> None:
        options = {name: value for name, value in locals().items() if name not in ("self", "dataset", "__class__")}
        require_dataset(dataset)
        self._loader = _core.Loader(dataset, **options)
        super().__init__(self._loader)
        self._dataset = dataset
        self._options = options
        self._warned = False  # of copies

    @property
    def dataset(self) -> Dataset:
        """What it reads."""
        return self._dataset

    @property
    def batch_size(self) -> int:
        """Samples a batch, of this rank."""
        batch_size: int = self._options["batch_size"]
        return batch_size

    @property
    def num_steps(self) -> int:
        """Batches of an epoch, of this rank."""
        return self._loader.num_steps

    @property
    def samples_per_epoch(self) -> int:
        """Samples of an epoch, of this rank."""
        return self._loader.samples_per_epoch

    @property
    def memory_bytes(self) -> int:
        """Bytes reserved, at most memory_budget."""
        return self._loader.memory_bytes

    @property
    def source(self) -> str:
        """How bytes come from the file: "scatter", "hdf5", "mapped" or "direct"."""
        return self._loader.source

    @property
    def source_reason(self) -> str:
        """Why it reads so, and what was measured: one line."""
        return self._loader.source_reason

    def __iter__(self) -> Iterator[Batch]:
        return self._batches(self._begin())

    def _next(self) -> Batch | None:
        return self._loader.next()

    def _restore(self, state: str) -> None:
        given = json.loads(state)
        version = given.get("chunkio_state") if isinstance(given, dict) else None
        own = json.loads(self._loader.state_at(0, 0))["chunkio_state"]
        if version == own or version not in (1, 2):
            self._loader.restore(state)
            return
        # A state of another version of the order goes on in it.
        options = {**self._options, "order_version": version}
        other = _core.Loader(self._dataset, **options)
        other.restore(state)
        self._loader.close()
        self._loader = self._core = other
        self._options = options

    def _batches(self, turn: int) -> Iterator[Batch]:
        while (batch := self._take(turn)) is not None:
            if batch.copied and not self._warned:
                self._warned = True
                warnings.warn(
                    f"more than {self._options['max_held']} batches are held at once, so further ones are copied "
                    "into memory of their own, beyond memory_budget; drop batches that were used, or raise max_held",
                    RuntimeWarning,
                    stacklevel=2,
                )
            yield batch
            del batch  # so that nothing is held while the next one is made

    def stats(self, epoch: int | None = None) -> dict[str, Any]:
        """What was delivered and what it cost, in all or in one of the last eight epochs. Seconds are wall time."""
        text = self._loader.stats_json() if epoch is None else self._loader.epoch_stats_json(epoch_number(epoch))
        stats: dict[str, Any] = json.loads(text)
        return stats

    def skipped(self) -> list[dict[str, Any]]:
        """Runs of rows that on_error="skip" skipped: first_row, num_rows, num_selected and reason."""
        skipped: list[dict[str, Any]] = json.loads(self._loader.skipped_json())
        return skipped

    def __reduce__(self) -> tuple[Any, ...]:
        return functools.partial(Loader, **self._options), (self._dataset,), self.state_dict()

    def __repr__(self) -> str:
        return f"<chunkio.Loader of {self._dataset!r}, {self.num_steps} batches of {self.batch_size}>"
