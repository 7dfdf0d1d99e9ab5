#!/usr/bin/env python3
"""The order of an epoch, written a second time from libchunkio/doc/order.md.

Slow and plain on purpose: small cases build every list in full. It shares nothing with the library, so that a
mistake would have to be made twice to go unseen.

    epoch_order_reference.py --write DIR    write the test vectors
    epoch_order_reference.py --check DIR    fail if DIR does not hold exactly these vectors
"""

import json
import math
import pathlib
import sys

WORD = 2**32


# 1. Random numbers


def philox(counter, key):
    c0, c1, c2, c3 = counter
    k0, k1 = key
    for round_number in range(10):
        if round_number > 0:
            k0 = (k0 + 0x9E3779B9) % WORD
            k1 = (k1 + 0xBB67AE85) % WORD
        p0 = 0xD2511F53 * c0
        p1 = 0xCD9E8D57 * c2
        c0, c1, c2, c3 = p1 // WORD ^ c1 ^ k0, p1 % WORD, p0 // WORD ^ c3 ^ k1, p0 % WORD
    return [c0, c1, c2, c3]


def lo_hi(number):
    return (number % WORD, number // WORD)


def stream_key(seed, epoch, lane, purpose):
    return tuple(philox((*lo_hi(epoch), lane, purpose), lo_hi(seed))[:2])


def words(key, slot):
    block = 0
    while True:
        yield from philox((*lo_hi(block), *lo_hi(slot)), key)
        block += 1


def draw(stream, n):
    bits = 32 if n <= WORD - 1 else 64
    while True:
        x = next(stream)
        if bits == 64:
            x += next(stream) * WORD
        if x * n % 2**bits >= 2**bits % n:
            return x * n // 2**bits


# 2. Permutations


def shuffled(things, stream):
    things = list(things)
    for i in reversed(range(1, len(things))):
        j = draw(stream, i + 1)
        things[i], things[j] = things[j], things[i]
    return things


def half_of_feistel(size):
    """Half of the bits of the smallest domain of an even number of bits that holds `size`, as a power of 2."""
    c = 0
    while 2**c < size:
        c += 1
    return 2 ** ((c + 1) // 2)


def feistel(size, key, purpose):
    half = half_of_feistel(size)

    def image(x):
        y = x
        while True:
            left, right = divmod(y, half)
            for round_number in range(8):
                w = philox((*lo_hi(right), round_number, purpose), key)[0]
                left, right = right, left ^ w % half
            y = left * half + right
            if y < size:
                return y

    return image


def permutation(size, key, purpose):
    if size <= 65536:
        return shuffled(range(size), words(key, 0)).__getitem__
    return feistel(size, key, purpose)


# 3. Row groups


def row_groups(case):
    """k, W and the version of the order of what a Loader reads."""
    rows, s, window = case["rows"], case["row_bytes"], case["window_bytes"]
    most = min(4 * 2**20, window // 2)
    n = min(case["chunk_rows"], rows)
    version = 1
    if n and (case["filtered"] or n * s <= window // 2):
        m = most // (n * s)
        k = n
        if case["newest"] >= 2 and n * s < 2**20 and n < rows and m >= 2:
            k, version = min(n * m, rows), 2
    else:
        k = min(max(1, most // s), rows)
    return {"k": k, "window_groups": max(1, window // (k * s)), "version": version}


# 3 to 8. The order


class Order:
    """One epoch of a small data set: all lists in full."""

    def __init__(self, case):
        seed, epoch = case["seed"], case["epoch"]
        k, window_slots, lanes = case["k"], case["window_groups"], case["lanes"]
        groups = []
        num_samples = 0
        for samples in case["files"]:
            rows = list(range(num_samples, num_samples + samples))
            groups += [rows[i : i + k] for i in range(0, samples, k)]
            num_samples += samples
        if "select" in case:
            wanted = {row for begin, end in case["select"] for row in range(begin, end)}
            groups = [[row for row in group if row in wanted] for group in groups]
            groups = [group for group in groups if group]
            num_samples = len(wanted)

        if case["mode"] == "random":
            samples = [row for group in groups for row in group]
            perm = permutation(num_samples, stream_key(seed, epoch, 0, 3), 3)
            sequence = [(None, samples[perm(p)]) for p in range(num_samples)]
        else:
            slots = range(len(groups))
            if case["mode"] == "chunk_shuffled":
                perm = permutation(len(groups), stream_key(seed, epoch, 0, 1), 1)
                slots = [perm(q) for q in slots]
            sequence = [(q, row) for q, group in enumerate(slots) for row in groups[group]]

        self.lanes = []
        for v in range(lanes):
            lane = sequence[v * num_samples // lanes : (v + 1) * num_samples // lanes]
            if case["mode"] == "chunk_shuffled":
                windows = {}
                first_slot = lane[0][0]
                for slot, row in lane:
                    windows.setdefault((slot - first_slot) // window_slots, []).append(row)
                rows = []
                for w in sorted(windows):
                    key = stream_key(seed, epoch, v, 2)
                    a = shuffled(range(len(windows[w])), words(key, first_slot + w * window_slots))
                    rows += [windows[w][i] for i in a]
            else:
                rows = [row for _, row in lane]
            self.lanes.append(rows)
        finish_lanes(self, case, num_samples)


def finish_lanes(order, case, num_samples):
    lanes = case["lanes"]
    order.b = case["batch_size"] * case["world_size"] // lanes
    used = []
    for rows in order.lanes:
        if case["uneven"] == "pad":
            used.append(-(-num_samples // lanes))
        elif case["uneven"] == "drop":
            used.append(num_samples // lanes)
        else:
            used.append(len(rows))
    if case["drop_last"]:
        used = [n // order.b * order.b for n in used]
    order.lanes = [[rows[i % len(rows)] for i in range(n)] for rows, n in zip(order.lanes, used)]


def rank_steps(order, case, rank):
    share = case["lanes"] // case["world_size"]
    mine = order.lanes[rank * share : (rank + 1) * share]
    steps = max(-(-len(rows) // order.b) for rows in mine)
    for t in range(steps):
        yield [row for rows in mine for row in rows[t * order.b : (t + 1) * order.b]]


class LargeOrder:
    """One sample at a time of an epoch too large to list: no padding, one lane a rank."""

    def __init__(self, case):
        self.case = case
        self.k = case["k"]
        self.num_samples = sum(case["files"])
        self.short = {}  # group -> length
        self.first_rows = []  # of each file: (first group, first row)
        groups = rows = 0
        for samples in case["files"]:
            self.first_rows.append((groups, rows))
            groups += -(-samples // self.k)
            rows += samples
            if samples % self.k:
                self.short[groups - 1] = samples % self.k
        self.num_groups = groups
        seed, epoch = case["seed"], case["epoch"]
        if case["mode"] == "random":
            self.perm = permutation(self.num_samples, stream_key(seed, epoch, 0, 3), 3)
        elif case["mode"] == "chunk_shuffled":
            self.perm = permutation(self.num_groups, stream_key(seed, epoch, 0, 1), 1)
            self.short_slots = {}
            for group, length in self.short.items():
                self.short_slots[self.slot_of_group(group)] = length

    def slot_of_group(self, group):
        """The inverse image: follows the cycle through `group` of the whole Feistel domain backwards."""
        half = half_of_feistel(self.num_groups)
        key = stream_key(self.case["seed"], self.case["epoch"], 0, 1)
        y = group
        while True:
            left, right = divmod(y, half)
            for round_number in reversed(range(8)):
                w = philox((*lo_hi(left), round_number, 1), key)[0]
                left, right = right ^ w % half, left
            y = left * half + right
            if y < self.num_groups:
                assert self.perm(y) == group
                return y

    def start(self, slot):
        lacking = [self.k - n for q, n in self.short_slots.items() if q < slot]
        return slot * self.k - sum(lacking)

    def slot_at(self, position):
        low, high = 0, self.num_groups  # start(low) <= position < start(high)
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (middle, high) if self.start(middle) <= position else (low, middle)
        return low

    def row_at(self, position):
        slot = self.slot_at(position)
        group = self.perm(slot)
        first_group, first_row = max(f for f in self.first_rows if f[0] <= group)
        return first_row + (group - first_group) * self.k + position - self.start(slot)

    def batch(self, lane, step):
        case = self.case
        b, lanes = case["batch_size"], case["lanes"]
        begin = lane * self.num_samples // lanes
        end = (lane + 1) * self.num_samples // lanes
        positions = range(begin + step * b, min(begin + (step + 1) * b, end))
        if case["mode"] == "sequential":
            return list(positions)
        if case["mode"] == "random":
            return [self.perm(p) for p in positions]
        first_slot = self.slot_at(begin)
        rows = []
        for p in positions:
            w = (self.slot_at(p) - first_slot) // case["window_groups"]
            slot = first_slot + w * case["window_groups"]
            window_begin = max(begin, self.start(slot))
            window_end = min(end, self.start(min(slot + case["window_groups"], self.num_groups)))
            a = self.window(lane, slot, window_end - window_begin)
            rows.append(self.row_at(window_begin + a[p - window_begin]))
        return rows

    def window(self, lane, slot, length):
        if getattr(self, "last_window", None) != (lane, slot):
            key = stream_key(self.case["seed"], self.case["epoch"], lane, 2)
            self.last_window = (lane, slot)
            self.last_shuffle = shuffled(range(length), words(key, slot))
        return self.last_shuffle


# The vectors


def case(mode, files, k, window_groups=1, lanes=1, world_size=1, batch_size=4, **more):
    files = [files] if isinstance(files, int) else files
    made = {"mode": mode, "files": files, "k": k, "window_groups": window_groups, "lanes": lanes}
    made |= {"world_size": world_size, "batch_size": batch_size}
    made |= {"uneven": "pad", "drop_last": False, "seed": 0, "epoch": 0} | more
    return made


def small_cases():
    shuffled_mode, big_seed = "chunk_shuffled", 2**64 - 3
    # One group, one sample, groups of one, exact multiples, a short last group, k beyond N.
    yield case(shuffled_mode, 1, 1)
    yield case(shuffled_mode, 1, 7, 3, batch_size=5)
    yield case(shuffled_mode, 2, 1, 1, batch_size=1)
    yield case(shuffled_mode, 40, 8, 2, batch_size=8)
    yield case(shuffled_mode, 41, 8, 2, batch_size=8)
    yield case(shuffled_mode, 37, 5, 1, batch_size=6)
    yield case(shuffled_mode, 37, 5, 100, batch_size=6)
    yield case(shuffled_mode, 53, 1, 7, batch_size=10)
    yield case(shuffled_mode, 31, 40, 2, batch_size=9)
    # Seeds and epochs of all sizes.
    for seed in (1, 7, 2**32 - 1, 2**32, 2**32 + 1, big_seed):
        yield case(shuffled_mode, 45, 4, 3, batch_size=7, seed=seed)
    for epoch in (1, 2, 2**32, 2**40 + 5):
        yield case(shuffled_mode, 45, 4, 3, batch_size=7, seed=7, epoch=epoch)
    # Several files, so several short groups; files shorter than a group.
    for seed in range(4):
        yield case(shuffled_mode, [10, 7, 1, 12, 5], 4, 2, batch_size=8, seed=seed)
    yield case(shuffled_mode, [3, 2, 1, 3], 5, 2, batch_size=2, seed=big_seed)
    yield case(shuffled_mode, [16, 16, 16], 4, 4, batch_size=8, seed=3)
    yield case(shuffled_mode, [16, 15, 16], 4, 4, 3, 3, batch_size=4, seed=3)
    # Lanes and ranks: the same lanes shared out among 1, 2, 3 and 6 ranks.
    for world_size in (1, 2, 3, 6):
        yield case(shuffled_mode, [33, 28, 30], 5, 2, 6, world_size, 24 // world_size, seed=11, epoch=3)
    # Ends.
    for uneven in ("pad", "drop", "exact"):
        for drop_last in (False, True):
            if uneven == "exact" and drop_last:
                continue
            end = {"uneven": uneven, "drop_last": drop_last, "seed": 5}
            yield case(shuffled_mode, [21, 20, 9], 6, 2, 4, 2, batch_size=6, **end)
            yield case(shuffled_mode, 47, 3, 4, 8, 4, batch_size=2, **end)
            yield case(shuffled_mode, 47, 47, 1, 5, 5, batch_size=3, **end)
            yield case("sequential", [21, 20, 9], 6, 2, 4, 2, batch_size=6, **end)
            yield case("random", [21, 20, 9], 6, 2, 4, 2, batch_size=6, **end)
    # Batches larger than lanes, lanes of one sample.
    yield case(shuffled_mode, 13, 4, 2, 13, 13, batch_size=1)
    yield case(shuffled_mode, 13, 4, 2, 2, 2, batch_size=100, uneven="exact")
    yield case(shuffled_mode, 13, 4, 2, 2, 2, batch_size=100, drop_last=True)
    yield case("sequential", 29, 4, 3, 3, 1, batch_size=9)
    yield case("random", 29, 4, 3, 3, 1, batch_size=9, seed=big_seed, epoch=9)
    yield case("random", 97, 10, 1, batch_size=16, seed=2)


def selected_cases():
    """Some rows of one file, as [begin, end) ranges."""
    shuffled_mode, big_seed = "chunk_shuffled", 2**64 - 3
    thirds = [[row, row + 1] for row in range(1, 61, 3)]
    # Of 12 groups 1, 6 and 10 whole, 4, 5 and 8 not at all, the others cut; the last one is short.
    mixed = [[2, 5], [5, 10], [11, 12], [14, 16], [19, 20], [30, 35], [36, 38], [47, 56], [57, 58]]
    # One row; the first; the last; all but one; all, which is no selection.
    yield case(shuffled_mode, 37, 5, 2, select=[[17, 18]])
    yield case(shuffled_mode, 37, 5, 2, select=[[0, 1]])
    yield case(shuffled_mode, 37, 5, 2, select=[[36, 37]])
    yield case(shuffled_mode, 37, 5, 2, select=[[0, 16], [17, 37]])
    yield case(shuffled_mode, 37, 5, 2, select=[[0, 37]])
    # Whole groups; a range that cuts two; groups of one row; one group.
    yield case(shuffled_mode, 60, 5, 2, batch_size=6, select=[[10, 30], [45, 60]], seed=4)
    yield case(shuffled_mode, 60, 5, 3, batch_size=6, select=[[13, 44]], seed=4)
    yield case(shuffled_mode, 60, 1, 7, batch_size=6, select=thirds, seed=4)
    yield case(shuffled_mode, 60, 60, 1, batch_size=6, select=thirds, seed=4)
    # All modes, seeds and epochs of all sizes.
    for mode in (shuffled_mode, "sequential", "random"):
        yield case(mode, 58, 5, 3, batch_size=7, select=mixed)
        yield case(mode, 58, 5, 2, batch_size=7, select=mixed, seed=big_seed, epoch=2**40 + 5)
        yield case(mode, 61, 4, 4, batch_size=7, select=thirds, seed=7, epoch=3)
        # As many lanes as samples.
        yield case(mode, 58, 5, 2, 29, 29, batch_size=1, select=mixed, seed=3)
    # The same lanes shared out among 1, 2, 3 and 6 ranks.
    for world_size in (1, 2, 3, 6):
        yield case(shuffled_mode, 58, 5, 2, 6, world_size, 12 // world_size, select=mixed, seed=11, epoch=3)
    # Ends.
    for uneven, drop_last in (("pad", False), ("pad", True), ("drop", False), ("drop", True), ("exact", False)):
        end = {"uneven": uneven, "drop_last": drop_last, "seed": 5}
        for mode in (shuffled_mode, "sequential", "random"):
            yield case(mode, 58, 5, 2, 4, 2, batch_size=6, select=mixed, **end)
            yield case(mode, 61, 4, 2, 3, 3, batch_size=4, select=thirds, **end)


def large_cases():
    """(case, [(lane, step), ...]): 65,536 groups are a table, one more a Feistel network."""
    yield case("chunk_shuffled", 65536, 1, 64, batch_size=8, seed=1), [(0, 0), (0, 9), (0, 8191)]
    yield case("chunk_shuffled", 65537, 1, 64, batch_size=8, seed=1), [(0, 0), (0, 9), (0, 8192)]
    made = case("chunk_shuffled", [300_001, 299_999], 3, 16, 4, 4, 8, seed=2**33 + 9, epoch=4, uneven="exact")
    yield made, [(0, 0), (1, 12), (2, 18_749), (3, 18_749)]
    made = case("chunk_shuffled", [1_000_003] * 5 + [17, 999_999], 7, 5, 2, 2, 8, seed=6, uneven="drop")
    yield made, [(0, 0), (0, 360_000), (1, 0), (1, 374_999)]
    made = case("chunk_shuffled", 10**10, 36, 4, 8, 8, 10, seed=2**63, epoch=1, uneven="exact")
    yield made, [(0, 0), (3, 77_777_777), (7, 124_999_999)]
    yield case("random", 65536, 100, 1, batch_size=8, seed=3), [(0, 0), (0, 8191)]
    yield case("random", 65537, 100, 1, batch_size=8, seed=3), [(0, 0), (0, 8192)]
    yield case("random", 10**10, 100, 1, 4, 4, 10, seed=3, epoch=8), [(0, 0), (2, 5), (3, 249_999_999)]
    yield case("sequential", 10**10, 100, 1, 3, 3, 10, uneven="exact"), [(0, 0), (1, 5), (2, 333_333_333)]


def group_cases():
    """Images of 32x32x3 and others; `chunk_rows` 0: they are not chunked."""
    default = 256 * 2**20
    for rows, row_bytes, chunk_rows in (
        (300_000, 3072, 1),
        (300_000, 3072, 7),
        (300_000, 3072, 341),  # one byte less than 1 MiB would be 341.3 rows
        (300_000, 3072, 342),
        (300_000, 3072, 1365),
        (300_000, 3072, 0),
        (1000, 3072, 1),
        (1366, 3072, 1),
        (1000, 3072, 1000),
        (1000, 3072, 2000),
        (50, 3072, 49),
        (10, 2**20, 1),
        (10, 2**20 - 1, 1),
        (10**6, 1, 1),
        (10**9, 784, 3),
        (1, 1, 1),
        (200_000, 3 * 224 * 224, 1),
        (200_000, 3 * 224 * 224, 6),
        (200_000, 3 * 224 * 224, 7),
        (200_000, 3 * 224 * 224, 100),
    ):
        for window_bytes in (default, 2**40, 8 * 2**20, 3 * 2**20 + 1, 4096, 1):
            for filtered in (False, True):
                for newest in (1, 2):
                    if filtered and chunk_rows == 0:
                        continue
                    made = {"rows": rows, "row_bytes": row_bytes, "chunk_rows": chunk_rows, "filtered": filtered}
                    yield made | {"window_bytes": window_bytes, "newest": newest}


def groups():
    """Section 3."""
    for made in group_cases():
        yield made | row_groups(made)


def small_chunk_orders():
    """Orders of files of small chunks, in both versions."""
    for files, chunk_rows, select in (
        ([700], 1, None),
        ([700], 3, None),
        ([300, 211, 94], 1, None),
        ([300, 211, 94], 7, None),
        ([700], 1, [[5, 6], [40, 300], [420, 421], [500, 650]]),
    ):
        for newest in (1, 2):
            made = {"rows": sum(files), "row_bytes": 3072, "chunk_rows": chunk_rows, "filtered": True}
            k = row_groups(made | {"window_bytes": 2**19, "newest": newest})
            for world_size, lanes in ((1, 1), (2, 4)):
                more = {"seed": 9, "epoch": 2} | ({"select": select} if select else {})
                yield case("chunk_shuffled", files, k["k"], k["window_groups"], lanes, world_size, 40, **more) | {
                    "version": k["version"], "chunk_rows": chunk_rows}


def whole_order(name, made):
    order = Order(made)
    ranks = [list(rank_steps(order, made, r)) for r in range(made["world_size"])]
    batches = [[r, t, rows] for r, steps in enumerate(ranks) for t, rows in enumerate(steps)]
    return {"name": name, **made, "num_steps": [len(steps) for steps in ranks], "batches": batches}


def orders():
    for number, made in enumerate(small_cases()):
        yield whole_order(f"small_{number}", made)
    for number, (made, wanted) in enumerate(large_cases()):
        order = LargeOrder(made)
        batches = [[lane, step, order.batch(lane, step)] for lane, step in wanted]
        yield {"name": f"large_{number}", **made, "batches": batches}
    for number, made in enumerate(selected_cases()):
        yield whole_order(f"selected_{number}", made)
    for number, made in enumerate(small_chunk_orders()):
        yield whole_order(f"small_chunks_{number}", made)


def random_numbers():
    every_bit = WORD - 1
    pi = (0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344), (0xA4093822, 0x299F31D0)
    for counter, key in (((0,) * 4, (0, 0)), ((every_bit,) * 4, (every_bit,) * 2), pi, ((1, 2, 3, 4), (5, 6))):
        yield {"counter": counter, "key": key, "block": philox(counter, key)}
    for seed, epoch, lane, purpose in ((0, 0, 0, 1), (2**64 - 1, 2**63 - 1, every_bit, 2), (7, 2**35, 3, 3)):
        key = stream_key(seed, epoch, lane, purpose)
        slot = seed // 3
        stream = words(key, slot)
        made = {"seed": seed, "epoch": epoch, "lane": lane, "purpose": purpose, "stream_key": key, "slot": slot}
        yield made | {"words": [next(stream) for _ in range(70)]}
    for n in (1, 2, 3, 10, 2**16, 2**31, 2**31 + 1, 3 * 2**30, every_bit, WORD, WORD + 1, 3 * 2**62, 2**64 - 1):
        stream = words((n % WORD, 17), 0)
        yield {"n": n, "key": (n % WORD, 17), "draws": [draw(stream, n) for _ in range(12)]}


def permutations():
    for size in (1, 2, 3, 10, 64, 101):
        key = stream_key(size, 5, 0, 1)
        yield {"kind": "table", "size": size, "key": key, "images": shuffled(range(size), words(key, 0))}
    for size in (1, 2, 3, 4, 5, 10, 64, 65, 101, 256):
        for purpose in (1, 3):
            key = stream_key(size, 5, 0, purpose)
            images = [feistel(size, key, purpose)(x) for x in range(size)]
            yield {"kind": "feistel", "size": size, "purpose": purpose, "key": key, "images": images}
    for size in (65_537, 10**6, 2**32, 2**32 + 1, 10**10, 2**62 + 1, 2**63 - 1):
        key = stream_key(size, 5, 0, 1)
        xs = [0, 1, 2, size // 3, size // 2, size - 2, size - 1]
        images = [feistel(size, key, 1)(x) for x in xs]
        yield {"kind": "feistel", "size": size, "purpose": 1, "key": key, "at": xs, "images": images}


def crop_of(sizes, seed, epoch, sample_id, echo_pass):
    """Section 10. `sizes`: height and width of the image, of the crop, padding, random_crop, flip."""
    height, width, crop_height, crop_width, padding, random_crop, flip = sizes
    rows = height + 2 * padding - crop_height
    columns = width + 2 * padding - crop_width
    key = stream_key(seed, epoch, 0, 4)
    block = philox((*lo_hi(sample_id), echo_pass, 0), key)
    top, left = rows // 2, columns // 2
    if random_crop:
        top, left = block[0] * (rows + 1) // WORD, block[1] * (columns + 1) // WORD
    return [top - padding, left - padding, bool(flip and block[2] >= WORD // 2)]


def crops():
    for sizes in (
        (32, 32, 32, 32, 4, True, True),
        (218, 178, 128, 100, 0, True, False),
        (7, 5, 9, 4, 2, False, True),
        (5, 6, 2, 3, 0, False, False),
        (2**28, 1, 1, 1, 2**20, True, True),
    ):
        for seed, epoch in ((0, 0), (2**64 - 1, 2**40 + 3)):
            for echo_pass in (0, 1, WORD - 1):
                ids = (0, 1, 2, 59_999, 2**33 + 5)
                made = {"sizes": sizes, "seed": seed, "epoch": epoch, "echo_pass": echo_pass, "ids": ids}
                yield made | {"crops": [crop_of(sizes, seed, epoch, sample_id, echo_pass) for sample_id in ids]}


def deals():
    """Section 11."""
    for rows, seed, epoch, rank, first_batch, echo_pass in (
        (12, 0, 0, 0, 0, 0),
        (12, 0, 0, 0, 0, 1),
        (12, 0, 0, 0, 0, 2),
        (1, 5, 1, 0, 4, 1),
        (37, 2**64 - 1, 2**40, 7, 2**31 + 6, 3),
    ):
        stream = words(stream_key(seed, epoch, rank, 5), (first_batch % WORD) * WORD + echo_pass)
        order = list(range(rows)) if echo_pass == 0 else shuffled(range(rows), stream)
        yield {"rows": rows, "seed": seed, "epoch": epoch, "rank": rank, "first_batch": first_batch,
               "echo_pass": echo_pass, "order": order}


def rounded_half_sqrt(quarter):
    return (math.isqrt(quarter) + 1) // 2


def box_of(image, ranges, block_of):
    """Section 12. `image`: height and width; `ranges`: S0, S1, R0, R1; `block_of`: the words of an attempt."""
    height, width = image
    s0, s1, r0, r1 = ranges
    for attempt in range(1, 11):
        x = block_of(attempt)
        area = height * width * (s0 + x[0] * (s1 - s0) // WORD)
        low, high = r0, r1
        for bit in range(8):
            middle = math.isqrt(low * high)
            low, high = (middle, high) if x[1] * 2**bit // 2**31 % 2 else (low, middle)
        ratio = low + (high - low) * (x[1] % 2**24) // 2**24
        w = rounded_half_sqrt(area * ratio // 2**54)
        h = rounded_half_sqrt(area // (64 * ratio))
        if 1 <= w <= width and 1 <= h <= height:
            return [x[2] * (height - h + 1) // WORD, x[3] * (width - w + 1) // WORD, h, w]
    h, w = height, width
    if width * 2**24 < r0 * height:
        h = max(1, (width * 2**25 // r0 + 1) // 2)
    elif width * 2**24 > r1 * height:
        w = max(1, (height * r1 // 2**23 + 1) // 2)
    return [(height - h) // 2, (width - w) // 2, h, w]


def resized_crops():
    for image, scale, ratio in (
        ((375, 500), (0.08, 1), (3 / 4, 4 / 3)),
        ((500, 333), (0.35, 1), (3 / 4, 4 / 3)),
        ((32, 32), (0.2, 0.9), (1, 1)),
        ((65535, 65535), (0.001, 1), (1 / 64, 64)),
        ((1, 1), (0.08, 1), (3 / 4, 4 / 3)),
        ((7, 65535), (0.5, 1), (0.1, 0.3)),
        # No attempt fits: the central box, cut in width, in height, and not at all; and one of no height.
        ((20, 4000), (1, 1), (3 / 4, 4 / 3)),
        ((4000, 21), (1, 1), (3 / 4, 4 / 3)),
        ((101, 100), (1, 1), (3 / 4, 4 / 3)),
        ((1000, 1), (1, 1), (64, 64)),
    ):
        ranges = [math.floor(s * WORD + 0.5) for s in scale] + [math.floor(r * 2**24 + 0.5) for r in ratio]
        for seed, epoch in ((0, 0), (2**64 - 1, 2**40 + 3)):
            key = stream_key(seed, epoch, 0, 4)
            for echo_pass in (0, 1, WORD - 1):
                ids = (0, 1, 2, 59_999, 2**33 + 5)
                made = {"image": image, "scale": scale, "ratio": ratio, "ranges": ranges}
                made |= {"seed": seed, "epoch": epoch, "echo_pass": echo_pass, "ids": ids, "boxes": [], "flipped": []}
                for sample_id in ids:
                    def block_of(number, sample_id=sample_id):
                        return philox((*lo_hi(sample_id), echo_pass, number), key)

                    made["boxes"].append(box_of(image, ranges, block_of))
                    made["flipped"].append(block_of(0)[2] >= WORD // 2)
                yield made


def center_crops():
    """Section 12, as torchvision computes it: in floats, rounded by Python."""
    for image, side, crop in (
        ((375, 500), 256, (224, 224)),
        ((500, 375), 256, (224, 224)),
        ((224, 224), 224, (224, 224)),
        ((1, 65535), 1, (1, 65535)),
        ((300, 401), 231, (224, 225)),
        ((301, 400), 229, (227, 227)),
        ((401, 300), 227, (224, 224)),
        ((97, 89), 30, (29, 28)),
        ((97, 89), 31, (28, 30)),
        ((89, 97), 32, (29, 25)),
        ((3, 10), 100, (97, 99)),
    ):
        height, width = image
        longer = int(side * max(image) / min(image))
        resized = (longer, side) if height >= width else (side, longer)
        begins = [round((whole - part) / 2.0) for whole, part in zip(resized, crop)]
        yield {"image": image, "side": side, "crop": crop, "resized": resized, "window": [*begins, *crop]}


def vectors():
    files = {"random_numbers": random_numbers, "permutations": permutations, "orders": orders, "groups": groups}
    files |= {"crops": crops, "deals": deals, "resized_crops": resized_crops, "center_crops": center_crops}
    for name, made in files.items():
        lines = ",\n".join(json.dumps(entry, separators=(",", ":")) for entry in made())
        yield f"{name}.json", f"[\n{lines}\n]\n"


def main():
    action, folder = sys.argv[1], pathlib.Path(sys.argv[2])
    for name, text in vectors():
        if action == "--write":
            (folder / name).write_text(text)
        elif (folder / name).read_text() != text:
            sys.exit(f"{folder / name} is not what this script makes; see --write")


if __name__ == "__main__":
    main()
