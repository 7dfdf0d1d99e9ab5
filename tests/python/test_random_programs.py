"""Random programs of the interface against a simple model of it: the order as its definition has it, and what is held.

A program makes a Loader, takes batches, leaves loops, holds batches and drops them, saves states, restores them, also
with other numbers of ranks and threads; after each step what is delivered and what is held is compared. The seed of a
failure is in the message of the error.
"""

import random
import warnings

import numpy as np
import pytest
from conftest import SAMPLE_BYTES, check_contents, images_of
from epoch_order_reference import Order, rank_steps

import chunkio

PROGRAMS = 1000
NUM_SAMPLES, CHUNK = 137, 6


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    import conftest

    path = tmp_path_factory.mktemp("programs") / "train.h5"
    conftest.write(path, 0, NUM_SAMPLES, CHUNK)
    return chunkio.Dataset(path)


class Program:
    def __init__(self, seed, data):
        self.random = random.Random(seed)
        self.data = data
        choice = self.random.choice
        self.lanes = choice([1, 1, 2, 4, 6])
        self.global_batch = self.lanes * choice([1, 3, 8])
        self.options = {
            "seed": self.random.randrange(2**64),
            "order": choice(["chunk_shuffled", "chunk_shuffled", "sequential", "random"]),
            "window_groups": self.random.randint(2, 5),
            "uneven": choice(["pad", "drop"]),
            "drop_last": choice([False, False, True]),
        }
        self.world_size = choice([size for size in (1, 2, 3) if self.lanes % size == 0])
        self.epoch, self.step = 0, 0  # of the next batch of all ranks
        self.left = None  # the place of a loop that was left, which states name until the next one begins
        self.restored = False  # to that place, which set_epoch() of the same epoch keeps
        self.held = []
        self.open()

    def open(self, state=None):
        self.loaders = []
        options = dict(self.options)
        options["window_bytes"] = options.pop("window_groups") * CHUNK * SAMPLE_BYTES
        for rank in range(self.world_size):
            loader = chunkio.Loader(
                self.data,
                batch_size=self.global_batch // self.world_size,
                lanes=self.lanes,
                rank=rank,
                world_size=self.world_size,
                num_threads=self.random.randint(1, 3),
                prefetch_depth=self.random.randint(1, 9),
                max_held=self.random.randint(1, 3),
                order_version=1,  # groups of the chunks that the reference is told
                source=self.random.choice(["auto", "scatter", "mapped", "direct"]),
                **options,
            )
            if state is not None:
                loader.load_state_dict(state)
            self.loaders.append(loader)

    def expected(self, epoch):
        case = {
            "mode": self.options["order"], "files": [NUM_SAMPLES], "k": CHUNK, "lanes": self.lanes, "epoch": epoch,
            "world_size": self.world_size, "batch_size": self.global_batch // self.world_size,
            **{name: self.options[name] for name in ("seed", "window_groups", "uneven", "drop_last")},
        }
        order = Order(case)
        return [list(rank_steps(order, case, rank)) for rank in range(self.world_size)]

    def take(self, count):
        """The next batches of an epoch, up to its end."""
        wanted = self.expected(self.epoch)
        self.left, self.restored = None, False
        loops = [iter(loader) for loader in self.loaders]
        for taken in range(count):
            batches = [next(loop, None) for loop in loops]
            if self.step == len(wanted[0]):
                assert batches == [None] * len(batches)
                self.epoch, self.step = self.epoch + 1, 0
                return
            for rank, batch in enumerate(batches):
                assert (batch.epoch, batch.step) == (self.epoch, self.step)
                assert check_contents(batch) == wanted[rank][self.step]
                if self.random.random() < 0.3:
                    rows = wanted[rank][self.step]
                    self.held.append((rows, self.random.choice([batch, batch.images, np.asarray(batch.images)])))
            self.step += 1
        # The next loop is the next epoch, unless a state leads back.
        self.left = (self.epoch, self.step)
        self.epoch, self.step = self.epoch + 1, 0
        if self.random.random() < 0.6:
            self.restore(self.state())

    def state(self):
        states = [loader.state_dict() for loader in self.loaders]
        assert all(state == states[0] for state in states)
        assert (states[0]["epoch"], states[0]["step"]) == (self.left or (self.epoch, self.step))
        return states[0]

    def restore(self, state):
        if self.random.random() < 0.5:
            for loader in self.loaders:
                loader.load_state_dict(state)
        else:
            self.world_size = self.random.choice([size for size in (1, 2, 3) if self.lanes % size == 0])
            self.open(state)
        self.epoch, self.step, self.left = state["epoch"], state["step"], None
        self.restored = True

    def run(self):
        for _ in range(self.random.randint(2, 6)):
            action = self.random.random()
            if action < 0.7:
                self.take(self.random.randint(1, 40))
            elif action < 0.8:
                epoch = self.random.choice([0, 3, 2**40, self.epoch])
                if not (self.restored and epoch == self.epoch):
                    self.epoch, self.step, self.restored = epoch, 0, False
                self.left = None
                for loader in self.loaders:
                    loader.set_epoch(epoch)
            elif action < 0.9:
                self.restore(self.state())
            else:
                self.random.shuffle(self.held)
                del self.held[len(self.held) // 2 :]
            for rows, kept in self.held:
                images = kept.images if isinstance(kept, chunkio.Batch) else kept
                np.testing.assert_array_equal(np.asarray(images), images_of(rows))


@pytest.mark.parametrize("first", range(0, PROGRAMS, 50))
def test_programs(data, first):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        for seed in range(first, first + 50):
            try:
                Program(seed, data).run()
            except Exception as error:
                raise AssertionError(f"program {seed}") from error
