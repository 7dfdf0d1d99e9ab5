from __future__ import annotations

import atexit
import json
import operator
import weakref
from typing import Any, Generic, TypeVar

from . import _core
from .errors import InvalidArgumentError

BatchT = TypeVar("BatchT")

# Threads must end before libraries that they use are unloaded.
_open: weakref.WeakSet[Epochs[Any]] = weakref.WeakSet()


@atexit.register
def _close_all() -> None:
    for loader in list(_open):
        loader.close()


def epoch_number(epoch: int) -> int:
    epoch = operator.index(epoch)
    if not 0 <= epoch <= 2**62:
        raise InvalidArgumentError(f"epoch must be between 0 and 2**62, got {epoch}")
    return epoch


class Epochs(Generic[BatchT]):
    """Which epoch a `for` is, and where a loader stands: what loaders for all devices have in common."""

    def __init__(self, core: _core.Loader | _core.DeviceLoader) -> None:
        self._core = core
        self._epoch = 0  # of the next `for`
        self._inside = False  # of the epoch before it, of which core.state() is the place
        self._restored = False  # to a place in epoch _epoch, where the next `for` goes on
        self._turn = 0  # of the last `for`; those before have ended
        self._begun = -1  # epoch of the last `for`, as long as it has delivered nothing
        _open.add(self)

    def __len__(self) -> int:
        return self._core.num_steps

    def set_epoch(self, epoch: int) -> None:
        """The next `for` is this epoch; where a state was loaded that is inside of it, it goes on there.

        A `for` that has begun goes on with its own epoch. If that is this one, and nothing was delivered yet, it counts
        as the next `for`: trainers ask for the iterator before they say which epoch begins.
        Raises ValueError for an epoch below 0.
        """
        epoch = epoch_number(epoch)
        self._restored = self._restored and epoch == self._epoch
        self._inside = epoch == self._begun
        self._epoch = epoch

    def state_dict(self) -> dict[str, Any]:
        """Where it stands: batches handed out count, those prefetched do not. Plain JSON types.

        Equal on all ranks that have taken equally many batches; names the contents of the file, never its path.
        """
        inside = self._inside or self._restored
        state: dict[str, Any] = json.loads(self._place() if inside else self._core.state_at(self._epoch, 0))
        return state

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Goes to the place of a state: the next `for` goes on there, exactly.

        Rank and world_size may differ from those of the state if `lanes` and the global batch are equal; so may
        everything that does not change the order. Raises ValueError that names the difference.
        """
        self._restore(json.dumps(state))
        self._turn += 1
        self._epoch = self._core.position()[0]
        self._inside = False
        self._restored = True
        self._begun = -1

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.load_state_dict(state)

    def bottleneck(self) -> dict[str, Any]:
        """What limits ("bottleneck"), what shows it ("evidence"), and what would help ("suggestions", best first).

        "too_short" is True of a run of less than half a second, which is too little to judge.
        """
        report: dict[str, Any] = json.loads(self._core.bottleneck_json())
        return report

    def report(self) -> str:
        """The report as text, a sentence a line; of a run that was too short to judge, just that."""
        report = self.bottleneck()
        sentences = [*report["evidence"], *(suggestion["text"] for suggestion in report["suggestions"])]
        if report["too_short"]:
            return str(sentences[0])
        return "\n".join(sentences) or "Nothing was delivered yet."

    def close(self) -> None:
        """Stops reading and gives the memory back; batches that are held stay valid."""
        self._core.close()

    def _restore(self, state: str) -> None:
        self._core.restore(state)

    def _next(self) -> BatchT | None:
        raise NotImplementedError

    def _place(self) -> str:
        """The state behind the batch that was delivered last, inside of an epoch."""
        return self._core.state()

    def _begin(self) -> int:
        """Goes to the epoch of a `for`. Returns whose turn it is now."""
        self._core.start(self._epoch)
        self._turn += 1
        self._begun = self._epoch
        self._epoch += 1
        self._restored = False
        self._inside = True
        return self._turn

    def _take(self, turn: int) -> BatchT | None:
        """The next batch of the `for` of that turn; None at the end of its epoch."""
        if turn != self._turn:
            raise RuntimeError("another loop over this loader has begun; it delivers one epoch at a time")
        if self._epoch == self._begun:
            self._epoch += 1
        self._begun = -1
        batch = self._next()
        self._inside = batch is not None
        return batch
