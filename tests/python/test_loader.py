"""What random programs (test_random_programs.py) do not meet: fields, errors, threads, signals, processes, memory."""

import gc
import inspect
import json
import multiprocessing
import os
import pathlib
import pickle
import re
import signal
import subprocess
import sys
import textwrap
import threading
import time
import warnings
import weakref

import numpy as np
import pytest
from conftest import check_contents, ids, images_of, num_threads, run_program, skip_batches

import chunkio

ROOT = pathlib.Path(__file__).parent.parent.parent
SMALL = {"batch_size": 16, "seed": 7, "window_bytes": 4 * 9 * 90}
# The first batch of a loader that reads from it comes after half a second.
SLOW = {"bytes_per_second": 1e9, "request_seconds": 0.5, "queue_depth": 1}


def test_each_loop_is_the_next_epoch(data):
    loader = chunkio.Loader(data, **SMALL)
    seen = []
    for epoch in range(3):
        rows = []
        for step, batch in enumerate(loader):
            assert (batch.epoch, batch.step) == (epoch, step)
            rows += check_contents(batch)
        assert sorted(rows) == list(range(230))
        seen.append(rows)
    assert seen[0] != seen[1] != seen[2]
    loader.set_epoch(1)
    assert [row for batch in loader for row in ids(batch)] == seen[1]
    assert next(iter(loader)).epoch == 2


def test_an_older_loop_says_that_another_began(data):
    loader = chunkio.Loader(data, **SMALL)
    first = iter(loader)
    next(first)
    second = iter(loader)
    with pytest.raises(RuntimeError, match="another loop"):
        next(first)
    assert next(second).epoch == 1


def test_fields_and_parts_of_a_batch(data):
    loader = chunkio.Loader(data, fields=["weights"], order="sequential", batch_size=100)
    batches = list(loader)
    assert [batch.size for batch in batches] == [100, 100, 30]
    images, labels = batches[2]
    assert images.shape == (30, 6, 5, 3) and labels.shape == (30,)
    np.testing.assert_array_equal(np.asarray(batches[2]["weights"])[:, 0], np.arange(200, 230) * 0.5)
    with pytest.raises(KeyError, match="mask"):
        batches[0]["mask"]
    assert "step 2" in repr(batches[2])


@pytest.mark.parametrize(
    "rows, wanted",
    [
        (slice(10, 60), range(10, 60)),
        (slice(0, 230, 7), range(0, 230, 7)),
        (range(5, 9), range(5, 9)),
        ([3, 1, 200], [1, 3, 200]),
        (np.arange(230) % 2 == 0, range(0, 230, 2)),
        (np.array([7, 8], np.int32), [7, 8]),
    ],
)
def test_rows(data, rows, wanted):
    loader = chunkio.Loader(data, rows=rows, **SMALL)
    assert sorted(row for batch in loader for row in ids(batch)) == list(wanted)


def test_only_labels(data):
    loader = chunkio.Loader(data, only_labels=[0, 3], **SMALL)
    labels = {int(label) for batch in loader for label in np.asarray(batch.labels)}
    assert labels == {0, 3}


def test_every_option_of_cpp_is_a_keyword():
    """Groups of C++ are flat here. Those that are not keywords: what happens when too many are held, which is always a
    copy, and looking at signals."""
    header = (ROOT / "libchunkio/include/chunkio/loader.hpp").read_text()
    struct = header[header.index("struct LoaderOptions {") : header.index("/// Says that next() has no timeout")]
    members = set(re.findall(r"^ {2,4}[\w:<>, ()]+? (\w+)(?: = [^;]+)?;$", struct, re.MULTILINE))
    assert {"batch_size", "rows", "disk_limit", "on_wait", "budget"} <= members
    members -= {"ranks", "memory", "io", "mode", "budget", "version"}
    members |= {"rank", "world_size", "memory_budget", "order_version"}
    keywords = set(inspect.signature(chunkio.Loader).parameters) - {"dataset"}
    assert keywords == members - {"when_held", "release_timeout_seconds", "on_wait"}


def test_every_option_reaches_cpp(data):
    """Each value is one that C++ refuses, or that shows."""
    for keyword, value in {
        "batch_size": 0, "rank": 1, "world_size": 0, "lanes": 3, "uneven": "never", "window_bytes": 0,
        "fields": ["none"], "order": "chaos", "only_labels": [99], "verify": "maybe", "on_error": "ignore",
        "num_threads": -1, "prefetch_depth": 0, "max_held": 0, "memory_budget": 0, "source": "tape",
        "resident": "always", "num_epochs": -1, "disk_limit": {"bytes_per_second": -1.0},
    }.items():
        with pytest.raises((ValueError, LookupError)) as caught:
            chunkio.Loader(data, **{keyword: value, **({"world_size": 2} if keyword == "lanes" else {})})
        assert isinstance(caught.value, chunkio.Error)
    assert len(list(chunkio.Loader(data, disk_limit="nvme"))) > 0
    with pytest.raises(ValueError, match="sata-ssd"):
        chunkio.Loader(data, disk_limit="floppy")
    for epoch in (-1, 2**62 + 1, 2**70):
        with pytest.raises(ValueError, match="epoch must be between 0 and"):
            chunkio.Loader(data).set_epoch(epoch)
        with pytest.raises(ValueError, match="epoch must be between 0 and"):
            chunkio.Loader(data).stats(epoch=epoch)
    assert chunkio.Loader(data, drop_last=True, batch_size=100).num_steps == 2
    assert chunkio.Loader(data, source="scatter").source == "scatter"
    assert chunkio.Loader(data, source="direct", direct_io=True).stats()["facts"]["direct_io"] in (True, False)
    assert chunkio.Loader(data, seed=2**64 - 1).state_dict()["seed"] == 2**64 - 1
    loader = chunkio.Loader(data, resident="host", verify="off", num_threads=3)
    assert loader.stats()["facts"]["resident"] == "host" and loader.stats()["num_threads"] == 3


@pytest.mark.parametrize(
    "error, options, text",
    [
        (TypeError, {"disk_limit": {1: 1}}, "there is no option 1"),
        (ValueError, {"rows": [[1, 2], [3, 4]]}, "rows must have one axis, not 2"),
        (ValueError, {"rows": 5}, "rows must have one axis, not 0"),
        (ValueError, {"rows": slice(5, 5)}, "a selection of no rows"),
        (TypeError, {"fields": "weights"}, "fields cannot be 'weights'"),
        (TypeError, {"batch_size": 10**30}, "batch_size cannot be 1000"),
        (TypeError, {"batch_size": "many"}, "batch_size"),
        (TypeError, {"seed": -1}, "seed cannot be -1"),
        (TypeError, {"rows": [1.5]}, "rows must be integers, booleans or a slice"),
        (TypeError, {"rows": "abc"}, "rows must be integers, booleans or a slice"),
        (ValueError, {"rows": [True, False, True]}, "rows has 3 booleans"),
        (TypeError, {"disk_limit": 3}, "disk_limit must be a dict"),
    ],
)
def test_odd_options_are_told_in_words_of_python(data, error, options, text):
    with pytest.raises(error, match=text):
        chunkio.Loader(data, **options)


def test_a_path_is_no_dataset(data):
    for make in (chunkio.Loader, chunkio.Normalizer):
        for given in (data.path, None):
            with pytest.raises(TypeError, match=r"dataset must be a chunkio.Dataset, got .*; chunkio.Dataset\(path\) opens"):
                make(given)


def test_states_are_exact_and_plain_json(data):
    loader = chunkio.Loader(data, **SMALL)
    skip_batches(loader, 5)
    state = json.loads(json.dumps(loader.state_dict()))
    loader.load_state_dict(loader.state_dict())  # since a loop that was left cannot be entered again
    rest = [ids(batch) for batch in loader]
    for options in ({}, {"num_threads": 1}, {"source": "hdf5"}):
        again = chunkio.Loader(data, **SMALL, **options)
        again.load_state_dict(state)
        assert again.state_dict() == state
        assert [ids(batch) for batch in again] == rest
        assert next(iter(again)).epoch == 1
    with pytest.raises(ValueError, match="seed") as caught:
        chunkio.Loader(data, **{**SMALL, "seed": 8}).load_state_dict(state)
    assert "::" not in str(caught.value)
    with pytest.raises(ValueError):
        loader.load_state_dict({"epoch": 1})


def test_states_of_either_version_of_the_order_go_on(data):
    options = {**SMALL, "window_bytes": 1 << 20}
    for version in (1, 2):
        loader = chunkio.Loader(data, **options, order_version=version)
        skip_batches(loader, 5)
        state = loader.state_dict()
        assert state["chunkio_state"] == version
        rest = [ids(batch) for batch in pickle.loads(pickle.dumps(loader))]
        for other in (1, 2):
            again = chunkio.Loader(data, **options, order_version=other)
            again.load_state_dict(state)
            assert again.state_dict() == state
            copy = pickle.loads(pickle.dumps(again))
            assert [ids(batch) for batch in again] == rest
            assert [ids(batch) for batch in copy] == rest
            with pytest.raises(ValueError, match="seed"):
                chunkio.Loader(data, **{**options, "seed": 8}, order_version=other).load_state_dict(state)
    with pytest.raises(ValueError, match="order version must be between 1 and 2"):
        chunkio.Loader(data, **options, order_version=3)


def place(loader):
    state = loader.state_dict()
    return state["epoch"], state["step"]


def test_set_epoch_after_the_iterator_was_made(data):
    loader = chunkio.Loader(data, **SMALL)
    batches = iter(loader)
    loader.set_epoch(0)
    rows = [ids(next(batches)) for _ in range(3)]
    state = loader.state_dict()
    assert place(loader) == (0, 3)
    rest = [ids(batch) for batch in batches]
    assert sorted(sum(rows + rest, [])) == list(range(230))
    assert place(loader) == (1, 0)

    again = chunkio.Loader(data, **SMALL)
    again.load_state_dict(state)
    batches = iter(again)
    again.set_epoch(0)
    assert again.state_dict() == state
    assert [ids(batch) for batch in batches] == rest
    assert next(iter(again)).epoch == 1


def test_set_epoch_inside_of_a_loop_is_for_the_next_one(data):
    loader = chunkio.Loader(data, **SMALL)
    batches = iter(loader)
    next(batches)
    loader.set_epoch(5)
    assert place(loader) == (5, 0)
    assert next(batches).epoch == 0
    assert place(loader) == (0, 2)
    assert sum(1 for _ in batches) == 13
    assert next(iter(loader)).epoch == 5


def test_holding_is_always_safe(data):
    loader = chunkio.Loader(data, **SMALL, max_held=2)
    with pytest.warns(RuntimeWarning, match="max_held"):
        held = list(loader)
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # once is enough
        held += list(loader)
    stats = loader.stats()
    assert stats["batches"] == 30 and stats["copied_batches"] == 28
    arrays = [np.asarray(batch.images) for batch in held]
    del loader
    gc.collect()
    for batch in held:
        check_contents(batch)
    rows = [ids(batch) for batch in held]
    del held
    gc.collect()
    for array, row in zip(arrays, rows):
        np.testing.assert_array_equal(array, images_of(row))


def test_a_plain_loop_copies_nothing(data):
    loader = chunkio.Loader(data, **SMALL, max_held=2)
    for _ in range(3):
        for images, labels in loader:
            np.asarray(images)
    assert loader.stats()["copied_batches"] == 0


def test_statistics_and_reports(data):
    loader = chunkio.Loader(data, **SMALL)
    skip_batches(loader, len(loader) + 1)
    assert loader.stats()["images"] == 230
    assert loader.stats(epoch=0)["images"] == 230 and loader.stats(epoch=3)["images"] == 0
    assert isinstance(loader.stats()["stall_seconds"], float)
    assert "too short to judge" in loader.report() and loader.bottleneck()["bottleneck"]
    assert loader.skipped() == []
    assert chunkio.Loader(data).report() == "Nothing was delivered yet."


@pytest.mark.parametrize("waits", ["next(iter(loader))", "loader.stats()"], ids=["for a batch", "for the turn"])
def test_ctrl_c_ends_a_wait(make_file, waits):
    waited = run_program(f"""
        import chunkio, threading, os, signal, sys, time
        signal.signal(signal.SIGINT, signal.default_int_handler)  # which a shell's background jobs ignore
        limit = {{"bytes_per_second": 1e9, "request_seconds": 3, "queue_depth": 1}}
        loader = chunkio.Loader(chunkio.Dataset({make_file(chunk=230)!r}), disk_limit=limit)
        def press():
            global pressed
            time.sleep(0.5)
            pressed = time.monotonic()
            os.kill(os.getpid(), signal.SIGINT)
        threading.Thread(target=press).start()
        turn = {waits == "loader.stats()"}
        if turn:
            batches = iter(loader)
            threading.Thread(target=lambda: next(batches), daemon=True).start()
            time.sleep(0.2)
        try:
            {waits}
        except KeyboardInterrupt:
            print(time.monotonic() - pressed)
        assert turn or next(iter(loader)).size  # nothing was lost
        # The other thread waits on, and holds what a build for tests would call leaked.
        sys.stdout.flush()
        os._exit(0)
    """)
    assert float(waited) < 0.5  # 0.05 s and a busy machine


@pytest.mark.parametrize("seconds", [0, 0.01, 0.5], ids=["reads", "reads and waits", "waits"])
def test_an_interpreter_ends_while_a_thread_reads(make_file, seconds):
    """Python before 3.14 unwinds the stack of a thread that wants the GIL then."""
    program = f"""
        import chunkio, threading, time
        limit = {{"bytes_per_second": 1e9, "request_seconds": {seconds}, "queue_depth": 1}}
        loader = chunkio.Loader(chunkio.Dataset({make_file(chunk=23)!r}), batch_size=7, disk_limit=limit)
        def read():
            while True:
                for batch in loader:
                    pass
        threading.Thread(target=read, daemon=True).start()
        time.sleep(0.1)
    """
    for _ in range(3):
        assert subprocess.run([sys.executable, "-c", textwrap.dedent(program)], capture_output=True).returncode == 0


def test_what_a_handler_raises_takes_no_batch_away(data):
    """Also where it comes between the arrival of a batch and the return from next()."""

    class Alarm(Exception):
        pass

    def ring(_, frame):
        if frame.f_code.co_name == "_next":
            raise Alarm

    limit = {"bytes_per_second": 2e6, "request_seconds": 0.002, "queue_depth": 1}
    loader = chunkio.Loader(data, batch_size=16, seed=7, window_bytes=2 * 9 * 90, disk_limit=limit)
    before = signal.signal(signal.SIGALRM, ring)
    try:
        rows, caught, batches = [], 0, iter(loader)
        while True:
            try:
                if caught < 30:
                    signal.setitimer(signal.ITIMER_REAL, 0.0005 * (1 + caught % 10))
                batch = next(batches, None)
                signal.setitimer(signal.ITIMER_REAL, 0)
            except Alarm:
                caught += 1
                loader.load_state_dict(loader.state_dict())
                batches = iter(loader)
                continue
            if batch is None:
                break
            rows += check_contents(batch)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    # A signal in the last microseconds, when the batch is on its way up already, still takes it.
    assert caught > 0 and len(set(rows)) == len(rows) >= 230 - 16


def test_other_threads_run_while_one_waits(make_file):
    loader = chunkio.Loader(chunkio.Dataset(make_file(chunk=230)), disk_limit=SLOW)
    batches = iter(loader)
    worker = threading.Thread(target=lambda: next(batches))
    worker.start()
    count = 0
    while worker.is_alive():
        count += 1
        time.sleep(0.001)
    assert count > 20


def test_threads_take_turns(data):
    loader = chunkio.Loader(data, **SMALL)
    batches, rows, lock = iter(loader), [], threading.Lock()

    def take():
        while True:
            with lock:
                batch = next(batches, None)
            if batch is None:
                return
            rows.extend(check_contents(batch))
            loader.state_dict()

    workers = [threading.Thread(target=take) for _ in range(4)]
    [worker.start() for worker in workers]
    [worker.join() for worker in workers]
    assert sorted(rows) == list(range(230))


def test_what_is_dropped_leaves_no_thread(data):
    class Cycle:
        pass

    before = num_threads()
    for _ in range(3):
        cycle = Cycle()
        cycle.self, cycle.loader = cycle, chunkio.Loader(data, **SMALL)
        cycle.batches = iter(cycle.loader)
        next(cycle.batches)
        gone = weakref.ref(cycle.loader)
        del cycle
        gc.collect()
        assert gone() is None
    assert num_threads() == before


@pytest.mark.skipif("san" in os.environ.get("LD_PRELOAD", ""), reason="sanitizers keep what was freed")
def test_memory_stays_what_it_is(data):
    def resident():
        return int(re.search(r"VmRSS:\s+(\d+)", pathlib.Path("/proc/self/status").read_text())[1])

    loader = chunkio.Loader(data, **SMALL)
    for epoch in range(1100):
        for batch in loader:
            np.asarray(batch.images)
        if epoch == 100:
            before = resident()
    assert resident() < before + 2048  # KiB


def test_close_ends_it(data):
    loader = chunkio.Loader(data, **SMALL)
    batch = next(iter(loader))
    before = num_threads()
    loader.close()
    assert num_threads() < before
    check_contents(batch)
    with pytest.raises(ValueError, match="closed"):
        iter(loader)
    loader.close()


def test_a_loader_at_the_end_of_the_program_is_no_trouble(make_file):
    run_program(f"""
        import chunkio
        loader = chunkio.Loader(chunkio.Dataset({make_file()!r}))
        batches = iter(loader)
        keep = [next(batches)]
        chunkio.keep = [loader, batches, keep]
    """)


def test_a_forked_child_gets_one_clear_error(data):
    loader = chunkio.Loader(data, **SMALL)
    batches = iter(loader)
    batch = next(batches)
    read_end, write_end = os.pipe()
    child = os.fork()
    if child == 0:
        messages = []
        for call in (lambda: next(batches), lambda: loader.state_dict(), lambda: loader.stats(), lambda: data[0]):
            try:
                call()
                messages.append("no error")
            except chunkio.Error as error:
                messages.append(f"{error.code} {error}")
        check_contents(batch)  # what is held stays readable
        del loader, batches, batch
        gc.collect()
        os.write(write_end, json.dumps(messages).encode())
        os._exit(0)
    os.close(write_end)
    messages = json.loads(os.read(read_end, 65536))
    assert os.waitpid(child, 0)[1] == 0
    for message in messages:
        assert message.startswith("unsupported") and "fork" in message
    assert sorted(row for batch in batches for row in ids(batch)) != []


def spawned(loader, results):
    results.put([ids(batch) for batch in loader])


def test_a_pickled_loader_opens_anew_where_it_stood(data):
    loader = chunkio.Loader(data, **SMALL)
    skip_batches(loader, 4)
    rest = [ids(batch) for batch in pickle.loads(pickle.dumps(loader))]
    assert len(rest) == 11
    context = multiprocessing.get_context("spawn")
    results = context.Queue()
    process = context.Process(target=spawned, args=(loader, results))
    process.start()
    assert results.get(timeout=60) == rest
    process.join()
