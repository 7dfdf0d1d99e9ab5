"""Trains a small convolutional network with JAX, which reads batches through DLPack, without a copy.

    python train_jax.py TRAIN.h5 [TEST.h5]
"""

from __future__ import annotations

import sys

import jax
import jax.numpy as jnp
import numpy as np

import chunkio

EPOCHS, BATCH, RATE = 6, 64, 0.03
Params = dict[str, jax.Array]


def scores(params: Params, images: jax.Array) -> jax.Array:
    x = images / 64 - 2.0  # uint8 [B,H,W,C], as the file has it
    for name in ("conv1", "conv2"):
        axes = ("NHWC", "HWIO", "NHWC")
        x = jax.nn.relu(jax.lax.conv_general_dilated(x, params[name], (2, 2), "SAME", dimension_numbers=axes))
    return x.reshape(len(x), -1) @ params["dense"]


def loss(params: Params, images: jax.Array, labels: jax.Array) -> jax.Array:
    return -jnp.take_along_axis(jax.nn.log_softmax(scores(params, images)), labels[:, None], axis=1).mean()


@jax.jit
def step(params: Params, moments: Params, images: jax.Array, labels: jax.Array) -> tuple[Params, Params, jax.Array]:
    value, gradients = jax.value_and_grad(loss)(params, images, labels)
    moments = jax.tree.map(lambda m, g: 0.9 * m + g, moments, gradients)
    return jax.tree.map(lambda p, m: p - RATE * m, params, moments), moments, value


def main(train_path: str, test_path: str | None = None) -> None:
    train, test = chunkio.Dataset(train_path), chunkio.Dataset(test_path or train_path)
    _, height, width, channels = train.shape
    draw = np.random.default_rng(7)
    shapes = {"conv1": (3, 3, channels, 16), "conv2": (3, 3, 16, 32),
              "dense": (-(-height // 4) * -(-width // 4) * 32, len(train.class_names))}
    params = {name: jnp.asarray(draw.normal(0, np.prod(shape[:-1]) ** -0.5, shape)) for name, shape in shapes.items()}
    moments = jax.tree.map(jnp.zeros_like, params)
    loader = chunkio.Loader(train, batch_size=BATCH, seed=7, drop_last=True)  # one shape, so one compilation
    for epoch in range(EPOCHS):
        for batch in loader:
            images, labels = jax.dlpack.from_dlpack(batch.images), jax.dlpack.from_dlpack(batch.labels)
            params, moments, value = step(params, moments, images, labels)
            value.block_until_ready()  # steps that queue up would hold more and more batches
        print(f"epoch {epoch}: loss {float(value):.3f} in the last batch")
    tester = chunkio.Loader(test, order="sequential")
    right = sum(int((scores(params, jnp.asarray(x)).argmax(axis=1) == np.asarray(y)).sum()) for x, y in tester)
    print(f"accuracy {100 * right / len(test):.1f} % of {len(test)} images")


if __name__ == "__main__":
    main(*sys.argv[1:])
