#!/usr/bin/env python3
"""Two epochs of one loader from a web server that is an object store, too; for bench/remote_loaders.py.

    remote_epochs.py LOADER FILE --dir DIR --server URL --kept FOLDER [--check]

DIR, where each loader finds its own format of FILE, is served as URL/NAME-OF-DIR. FOLDER is empty, and where those
loaders that download put what they read. Each epoch is one JSON line, behind which comes a line on standard input. The
clock runs from before the loader is made, but behind the import of its package; for the second epoch from that line on.
With --check, batches are compared instead.
"""

import functools
import importlib
import json
import os
import pathlib
import time
import typing

import rounds
import stacking


def arrays(batch):
    images, labels = batch
    return images, labels


def chunkio_loader(options, url, kept=""):
    import chunkio
    import chunkio_loader as peer
    dataset = chunkio.Dataset(f"{url}/{peer.NAME}", remote_cache=kept)
    return chunkio.Loader(dataset, batch_size=options.batch, num_threads=options.threads, seed=7), peer.arrays


def chunkio_kept(options, url):
    return chunkio_loader(options, url, options.kept)


def mosaicml(options, url):
    import streaming
    streaming.base.util.clean_stale_shared_memory()
    dataset = streaming.StreamingDataset(remote=url, local=options.kept, shuffle=True, batch_size=options.batch)
    # With two workers batches were wrong (0.13.0) where a download takes long.
    return streaming.StreamingDataLoader(dataset, batch_size=options.batch, collate_fn=options.collate, num_workers=1,
                                         persistent_workers=True), arrays


def litdata_loader(options, url):
    import litdata
    import litdata.streaming.downloader
    from litdata.streaming.cache import Dir
    # Its client takes https:// only, unless it is told otherwise.
    litdata.streaming.downloader._OBSTORE_CLIENT_OPTIONS["allow_http"] = True
    # Of the ways that litdata_chunks.py tries, the fastest for images of this size.
    dataset = litdata.StreamingDataset(Dir(path=options.kept, url=url), shuffle=True, drop_last=False, batch_decode=256)
    return litdata.StreamingDataLoader(dataset, batch_size=options.batch, collate_fn=options.collate,
                                       num_workers=0), arrays


def webdataset_loader(options, url):
    import webdataset
    import webdataset_tar as peer
    count = len(list((pathlib.Path(options.dir) / os.path.basename(url)).glob("*.tar")))
    dataset = (webdataset.WebDataset([f"{url}/{shard:06}.tar" for shard in range(count)], shardshuffle=count,
                                     detshuffle=True, seed=7, empty_check=False)
               .shuffle(peer.SHUFFLE_BUFFER, initial=peer.SHUFFLE_BUFFER)
               .batched(options.batch, partial=True, collation_fn=functools.partial(peer.collate, shape=options.shape)))
    return webdataset.WebLoader(dataset, batch_size=None, num_workers=2, persistent_workers=True), arrays


class Way(typing.NamedTuple):
    make: typing.Callable  # (options, url) to the loader, and what gives images and labels of its batch
    package: str
    peer: tuple[str, str]  # the module that writes its format, and the function there
    suffix: str
    scheme: str = "http"


WAYS = {"chunkio": Way(chunkio_loader, "chunkio", ("chunkio_loader", "write_file"), ".chunkio"),
        "chunkio-kept": Way(chunkio_kept, "chunkio", ("chunkio_loader", "write_file"), ".chunkio"),
        "mosaicml": Way(mosaicml, "streaming", ("mosaicml_streaming", "write_shards"), ".mds", "s3"),
        "litdata": Way(litdata_loader, "litdata", ("litdata_chunks", "write_chunks"), ".litdata", "s3"),
        "webdataset": Way(webdataset_loader, "webdataset", ("webdataset_tar", "write_shards"), ".tars")}


def main():
    parser = rounds.make_parser(__doc__)
    parser.add_argument("loader", choices=WAYS)
    rounds.add_options(parser)
    parser.add_argument("--server", required=True)
    parser.add_argument("--kept", required=True)
    parser.add_argument("--write", action="store_true", help="write the loader's format, and do nothing else")
    parser.add_argument("--check", action="store_true")
    options = parser.parse_args()
    options.cold = False  # for packed()
    options.shape = rounds.image_shape(options.file)
    options.collate = functools.partial(stacking.stack_samples, shape=options.shape)
    way = WAYS[options.loader]
    if options.write:
        module, function = way.peer
        rounds.packed(options, way.suffix, functools.partial(getattr(importlib.import_module(module), function), options))
        return
    bucket = os.path.basename(os.path.abspath(options.dir))
    os.environ |= {"S3_ENDPOINT_URL": options.server, "AWS_ENDPOINT_URL_S3": options.server, "AWS_REGION": "us-east-1",
                   "AWS_DEFAULT_REGION": "us-east-1", "AWS_ACCESS_KEY_ID": "id", "AWS_SECRET_ACCESS_KEY": "secret"}
    root = f"s3://{bucket}" if way.scheme == "s3" else f"{options.server}/{bucket}"
    folder = os.path.basename(options.file) + way.suffix
    importlib.import_module(way.package)
    start = time.perf_counter()
    loader, deliver = way.make(options, f"{root}/{folder}")
    if options.check:
        rounds.check_epoch(map(deliver, loader), rounds.load_reference(options.file), options.loader)
        rounds.leave()
    for _ in range(2):
        images, first = 0, None
        for _, labels in map(deliver, loader):
            first = first or time.perf_counter() - start
            images += len(labels)
        end = time.perf_counter()
        print(json.dumps({"images": images, "seconds": end - start, "first_batch_seconds": first}), flush=True)
        input()  # the caller has counted requests
        start = time.perf_counter()
    rounds.leave()


if __name__ == "__main__":
    main()
