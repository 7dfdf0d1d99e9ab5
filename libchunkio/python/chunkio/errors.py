"""What chunkio raises: `Error`, and where one of Python's own exceptions fits, that one as well."""

from __future__ import annotations


class Error(Exception):
    """The root of all errors of chunkio.

    The message is one line that names the file, the cause and the hint. `code` says what kind of failure it was:
    "invalid_argument", "not_found", "unsupported", "refused_by_policy", "corrupt_data", "digest_mismatch",
    "io_failed", "no_space", "output_exists", "hdf5_failed", "cuda_failed", "out_of_resources", "cancelled" or "timed_out".
    """

    code: str = "unsupported"


class InvalidArgumentError(Error, ValueError):
    """An option or argument is out of range, or contradicts another."""

    code = "invalid_argument"


class NotFoundError(Error, LookupError):
    """A dataset or field does not exist in its file."""

    code = "not_found"


class MissingFileError(Error, FileNotFoundError):
    """A file or folder does not exist."""

    code = "not_found"


class OutputExistsError(Error, FileExistsError):
    """The output exists and overwriting was not asked for, or another program writes it."""

    code = "output_exists"


class StorageError(Error, OSError):
    """The operating system reported an error, or the disk is full."""

    code = "io_failed"


class ResourceError(Error, MemoryError):
    """A memory budget or a resource of the system is too small."""

    code = "out_of_resources"


class TimedOutError(Error, TimeoutError):
    """Something was not there in time. Nothing is lost: `state_dict()` is the place where a new loop goes on."""

    code = "timed_out"


for _class in (
    Error,
    InvalidArgumentError,
    MissingFileError,
    NotFoundError,
    OutputExistsError,
    ResourceError,
    StorageError,
    TimedOutError,
):
    _class.__module__ = "chunkio"
