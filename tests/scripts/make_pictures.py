"""Writes images of every kind, and beside each what Pillow decodes from it.

Usage: make_pictures.py OUTDIR

NAME.EXT is the image, NAME.rgb its [H,W,3] bytes and NAME.gray its [H,W] bytes; oriented_K.* are turned
upright. manifest.txt lists "FILE NAME HEIGHT WIDTH". What Pillow converts otherwise than by dropping alpha
and low bytes is computed with NumPy.
"""

import struct
import sys
import zlib
from pathlib import Path

import numpy as np
from PIL import Image, ImageOps

HEIGHT, WIDTH = 37, 51
PNG_SIGNATURE = b"\x89PNG\r\n\x1a\n"


def scene(height=HEIGHT, width=WIDTH):
    """Smooth areas, edges and noise: [H,W,3] uint8."""
    y, x = np.mgrid[0:height, 0:width].astype(np.float64)
    picture = np.stack([255 * x / width, 255 * y / height, 127 + 127 * np.sin(x / 3) * np.cos(y / 5)], -1)
    picture[height // 4 : height // 2, width // 4 : width // 2] = (250, 20, 60)
    noise = np.random.default_rng(5).integers(-20, 21, picture.shape)
    return np.clip(picture + noise, 0, 255).astype(np.uint8)


class Writer:
    def __init__(self, folder):
        self.folder = folder
        self.lines = []

    def expect(self, file_name, rgb, gray=None):
        """Records what a decoder should give for a file that has been written."""
        rgb = np.ascontiguousarray(rgb)
        if gray is None:
            gray = np.asarray(Image.fromarray(rgb).convert("L"))
        name = Path(file_name).stem
        (self.folder / f"{name}.rgb").write_bytes(rgb.tobytes())
        (self.folder / f"{name}.gray").write_bytes(np.ascontiguousarray(gray).tobytes())
        self.lines.append(f"{file_name} {name} {rgb.shape[0]} {rgb.shape[1]}")

    def add(self, file_name, image, **options):
        """Saves, and expects what Pillow reads back."""
        path = self.folder / file_name
        image.save(path, **options)
        with Image.open(path) as read:
            read.load()
            self.expect(file_name, np.asarray(read.convert("RGB")), np.asarray(read.convert("L")))


def to_ycck(path):
    """Marks a CMYK JPEG's Adobe segment as YCCK: the same samples, read through the YCC transform."""
    data = bytearray(path.read_bytes())
    adobe = data.index(b"Adobe")
    data[adobe + 11] = 2
    path.write_bytes(data)


def exif_with_orientation(orientation):
    exif = Image.Exif()
    exif[0x0112] = orientation
    return exif


def png_chunk(kind, data):
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def write_png(path, samples, colour_type):
    """A 16-bit PNG, which Pillow cannot write in colour. `samples` is [H,W,C] uint16."""
    height, width = samples.shape[:2]
    rows = b"".join(b"\0" + row.astype(">u2").tobytes() for row in samples)
    path.write_bytes(
        PNG_SIGNATURE
        + png_chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 16, colour_type, 0, 0, 0))
        + png_chunk(b"tEXt", b"Comment\0ancillary")
        + png_chunk(b"IDAT", zlib.compress(rows))
        + png_chunk(b"IEND", b"")
    )


def main():
    folder = Path(sys.argv[1])
    writer = Writer(folder)
    rgb = scene()
    image = Image.fromarray(rgb)
    gray = image.convert("L")
    alpha = Image.fromarray(np.tile(np.linspace(0, 255, WIDTH, dtype=np.uint8), (HEIGHT, 1)))

    for name, options in {
        "jpeg_420": {"subsampling": 2},
        "jpeg_422": {"subsampling": 1},
        "jpeg_444": {"subsampling": 0, "quality": 95},
        "jpeg_low": {"quality": 5},
        "jpeg_progressive": {"progressive": True},
        "jpeg_optimized": {"optimize": True},
    }.items():
        writer.add(f"{name}.jpg", image, **options)
    writer.add("jpeg_gray.jpg", gray)
    writer.add("jpeg_cmyk.jpg", image.convert("CMYK"), quality=90)
    ycck = folder / "jpeg_ycck.jpg"
    image.convert("CMYK").save(ycck, quality=90)
    to_ycck(ycck)
    with Image.open(ycck) as read:
        writer.expect(ycck.name, np.asarray(read.convert("RGB")), np.asarray(read.convert("L")))

    writer.add("png_rgb.png", image)
    writer.add("png_gray.png", gray)
    writer.add("png_bitmap.png", gray.convert("1"))
    writer.add("png_palette.png", image.convert("P", palette=Image.ADAPTIVE, colors=64))
    writer.add("png_palette_4bit.png", image.convert("P", palette=Image.ADAPTIVE, colors=13), bits=4)
    writer.add("png_with_profile.png", image, icc_profile=b"not a profile", dpi=(72, 72))

    # Alpha is dropped, hidden colours are kept.
    rgba = image.copy()
    rgba.putalpha(alpha)
    rgba.save(folder / "png_rgba.png")
    writer.expect("png_rgba.png", rgb)
    la = Image.merge("LA", (gray, alpha))
    la.save(folder / "png_gray_alpha.png")
    writer.expect("png_gray_alpha.png", np.repeat(np.asarray(gray)[..., None], 3, -1), np.asarray(gray))
    palette = image.convert("P", palette=Image.ADAPTIVE, colors=16)
    palette.save(folder / "png_palette_alpha.png", transparency=bytes(range(0, 256, 16)))
    writer.expect("png_palette_alpha.png", np.asarray(palette.convert("RGB")))

    # 16 bits are cut to the high byte.
    wide = rgb.astype(np.uint16) * 256 + 255 - rgb
    write_png(folder / "png_16.png", wide, 2)
    writer.expect("png_16.png", (wide >> 8).astype(np.uint8))
    write_png(folder / "png_gray_16.png", wide[..., :1], 0)
    writer.expect("png_gray_16.png", np.repeat((wide[..., :1] >> 8).astype(np.uint8), 3, -1), rgb[..., 0])
    (folder / "pgm_16.pgm").write_bytes(b"P5\n# comment\n%d %d\n65535\n" % (WIDTH, HEIGHT) + wide[..., 0].astype(">u2").tobytes())
    writer.expect("pgm_16.pgm", np.repeat(rgb[..., :1], 3, -1), rgb[..., 0])

    writer.add("bmp.bmp", image)
    writer.add("bmp_gray.bmp", gray)
    writer.add("bmp_palette.bmp", palette)
    writer.add("ppm.ppm", image)
    writer.add("pgm.pgm", gray)
    writer.add("tiff.tif", image)
    writer.add("tiff_lzw.tiff", image, compression="tiff_lzw")
    writer.add("tiff_gray.tif", gray)
    writer.add("webp_lossless.webp", image, lossless=True)
    writer.add("webp_lossy.webp", image, quality=80)

    # A PNG under a JPEG's name, as ImageNet has one.
    image.save(folder / "misnamed.jpg", format="PNG")
    writer.expect("misnamed.jpg", rgb)
    (folder / "manifest.txt").write_text("\n".join(writer.lines) + "\n")

    # Orientation: stored as it is, and what the image is upright.
    lines = []
    for extension, options in {
        "jpg": {"quality": 90},
        "png": {},
        "webp": {"lossless": True},
        "tif": {},
    }.items():
        for orientation in range(1, 9):
            file_name = f"oriented_{extension}_{orientation}.{extension}"
            if extension == "tif":
                image.save(folder / file_name, tiffinfo={0x0112: orientation})
                stored = rgb
            else:
                image.save(folder / file_name, exif=exif_with_orientation(orientation).tobytes(), **options)
                with Image.open(folder / file_name) as read:
                    stored = np.asarray(read.convert("RGB"))
            exif_image = Image.fromarray(stored)
            exif_image.getexif()[0x0112] = orientation
            upright = np.asarray(ImageOps.exif_transpose(exif_image))
            name = Path(file_name).stem
            (folder / f"{name}.stored").write_bytes(stored.tobytes())
            (folder / f"{name}.upright").write_bytes(np.ascontiguousarray(upright).tobytes())
            lines.append(f"{file_name} {name} {upright.shape[0]} {upright.shape[1]}")
    (folder / "oriented.txt").write_text("\n".join(lines) + "\n")

    # What must be refused.
    image.save(folder / "refused_gif.gif")
    image.save(folder / "refused_gif_named.jpg", format="GIF")
    frames = [Image.fromarray(rgb), Image.fromarray(255 - rgb)]
    frames[0].save(folder / "refused_animated.webp", save_all=True, append_images=frames[1:], lossless=True)
    frames[0].save(folder / "refused_pages.tif", save_all=True, append_images=frames[1:])
    frames[0].save(folder / "refused_animated.png", save_all=True, append_images=frames[1:])
    for height, width in ((60000, 60000), (1000, 2000000)):
        header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
        (folder / f"huge_{width}x{height}.png").write_bytes(
            PNG_SIGNATURE + png_chunk(b"IHDR", header) + png_chunk(b"IDAT", zlib.compress(b"")) + png_chunk(b"IEND", b"")
        )
    (folder / "refused_text.jpg").write_text("this is no image\n")


if __name__ == "__main__":
    main()
