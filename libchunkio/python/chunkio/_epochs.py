from __future__ import annotations

import json
import operator
from typing import TYPE_CHECKING, Any, Generic, TypeVar

BatchT = TypeVar("BatchT")
ClassT = TypeVar("ClassT", bound="type[Any]")


class Epochs(Generic[BatchT]):
    """Which epoch a `for` is, and where a loader stands, for both loaders."""

    _epoch = 0  # of the next `for`
    _inside = False  # of the epoch before it, of which _state() is the place
    _restored = False  # to a place in epoch _epoch, where the next `for` goes on
    _turn = 0  # of the last `for`; those before have ended

    if TYPE_CHECKING:

        def _start(self, epoch: int) -> None: ...
        def _next(self) -> BatchT | None: ...
        def _state(self) -> str: ...
        def _state_at(self, epoch: int, step: int) -> str: ...
        def _restore(self, state: str) -> None: ...
        def _position(self) -> tuple[int, int]: ...

    def set_epoch(self, epoch: int) -> None:
        """The next `for` is this epoch; where a state was loaded that is inside of it, it goes on there."""
        epoch = operator.index(epoch)
        if epoch < 0:
            raise ValueError(f"epoch must be >= 0, got {epoch}")
        self._restored = self._restored and epoch == self._epoch
        self._inside = False
        self._epoch = epoch

    def state_dict(self) -> dict[str, Any]:
        """Where it stands: batches handed out count, those prefetched do not. Plain JSON types.

        Equal on all ranks that have taken equally many batches; names the contents of the file, never its path.
        """
        inside = self._inside or self._restored
        state: dict[str, Any] = json.loads(self._state() if inside else self._state_at(self._epoch, 0))
        return state

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Goes to the place of a state: the next `for` goes on there, exactly.

        Rank and world_size may differ from those of the state if `lanes` and the global batch are equal; so may
        everything that does not change the order. Raises ValueError that names the difference.
        """
        self._restore(json.dumps(state))
        self._turn += 1
        self._epoch = self._position()[0]
        self._inside = False
        self._restored = True

    def _begin(self) -> None:
        """Goes to the epoch of a `for`, whose turn it is now."""
        self._start(self._epoch)
        self._turn += 1
        self._epoch += 1
        self._restored = False
        self._inside = True

    def _take(self, turn: int) -> BatchT | None:
        """The next batch of the `for` of that turn; None at the end of its epoch."""
        if turn != self._turn:
            raise RuntimeError("another loop over this loader has begun; it delivers one epoch at a time")
        batch = self._next()
        if batch is None:
            self._inside = False
        return batch


def with_epochs(cls: ClassT) -> ClassT:
    """Gives a class what Epochs has. For Python 3.9 there is only nanobind 2, whose classes take no second base."""
    for name, value in vars(Epochs).items():
        if not name.startswith("__") and name not in vars(cls):
            setattr(cls, name, value)
    return cls
