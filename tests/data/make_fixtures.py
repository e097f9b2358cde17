#!/usr/bin/env python3
"""Makes the small files of this folder with NumPy and safetensors, as other programs write them.

pictures/ has small images of each kind; expected.npy has torchvision's results, in the order of samples.
kinds/ has BMP, WebP and TIFF.
turned/ has one image in the eight Exif orientations; jpg/expected.npy has the results of Pillow and torchvision for the JPEGs.
x is 0 to 23 as [4, 3, 2], in several types; y is 10, 20, 30, 40.
usage: tests/data/make_fixtures.py     (the files are committed; tests need no package)
"""
import gzip
import os
import struct

import numpy as np
from PIL import Image, ImageOps
from safetensors.numpy import save_file
from torchvision import transforms

os.chdir(os.path.dirname(os.path.abspath(__file__)))
x = np.arange(24).reshape(4, 3, 2)
y = np.arange(10, 50, 10)
for name, dtype in [("f8", "<f8"), ("f4", "<f4"), ("f4_big", ">f4"), ("f2", "<f2"), ("i8", "<i8"), ("i4", "<i4"),
                    ("i2_big", ">i2"), ("u4", "<u4"), ("u2", "<u2"), ("u1", "u1"), ("i1", "i1"), ("b1", "?")]:
    np.save(f"{name}.npy", (x - 12 if name[0] == "i" else x % 2 if name == "b1" else x).astype(dtype))
np.save("fortran.npy", np.asfortranarray(x.astype("f4")))
np.save("u8.npy", x.astype("u8"))
np.save("text.npy", np.array(["a", "bc"]))
np.save("records.npy", np.zeros(3, dtype=[("a", "f4"), ("b", "i4")]))
np.save("number.npy", np.float32(3))
np.savez("stored.npz", x=x.astype("f4"), y=y)
np.savez_compressed("deflated.npz", x=x.astype("f4"), y=y)
save_file({"x": x.astype("f4"), "y": y, "h": x.astype("f2")}, "tensors.safetensors", metadata={"by": "a \"test\""})


def zip64(name, to):
    """The same archive with all sizes in zip64 fields, as in archives of more than 4 GB."""
    with open(name, "rb") as f:
        old = f.read()
    end = old.rindex(b"PK\5\6")
    members, size, at = struct.unpack("<HII", old[end + 10 : end + 20])
    directory, entry = b"", at
    for _ in range(members):
        head = bytearray(old[entry : entry + 46])
        packed, unpacked, n, extra, comment, where = struct.unpack("<IIHHH8xI", head[20:])
        head[20:28] = b"\xff" * 8
        head[30:32], head[42:46] = struct.pack("<H", 28), b"\xff" * 4
        directory += bytes(head) + old[entry + 46 : entry + 46 + n] + struct.pack("<HHQQQ", 1, 24, unpacked, packed, where)
        entry += 46 + n + extra + comment
    record = b"PK\6\6" + struct.pack("<QHHIIQQQQ", 44, 45, 45, 0, 0, members, members, len(directory), at)
    locator = b"PK\6\7" + struct.pack("<IQI", 0, at + len(directory), 1)
    last = b"PK\5\6" + struct.pack("<HHHHIIH", 0, 0, 0xFFFF, 0xFFFF, 0xFFFFFFFF, 0xFFFFFFFF, 0)
    with open(to, "wb") as f:
        f.write(old[:at] + directory + record + locator + last)
    assert np.array_equal(np.load(to)["y"], y)


zip64("deflated.npz", "zip64.npz")
for name in ("f4.npy", "tensors.safetensors"):
    with open(name, "rb") as f, open(name + ".gz", "wb") as g:
        g.write(gzip.compress(f.read(), mtime=0))


def picture(width, height, seed):
    coarse = np.random.default_rng(seed).integers(0, 256, (6, 8, 3)).astype(np.uint8)
    return Image.fromarray(coarse).resize((width, height), Image.BICUBIC)


for folder in ("cat", "dog"):
    os.makedirs(f"pictures/{folder}", exist_ok=True)
picture(48, 36, 0).save("pictures/cat/colour.jpg", quality=90)
picture(36, 48, 1).convert("L").save("pictures/cat/grey.jpg")
picture(40, 40, 2).convert("CMYK").save("pictures/cat/ink.jpeg")
picture(180, 140, 3).save("pictures/cat/large.jpg", quality=80)
picture(48, 36, 4).save("pictures/cat/progressive.JPG", progressive=True)
alpha = Image.fromarray(np.random.default_rng(5).integers(0, 256, (36, 48)).astype(np.uint8))
clear = picture(48, 36, 5)
clear.putalpha(alpha)
clear.save("pictures/dog/clear.png")
picture(20, 17, 6).convert("P").save("pictures/dog/palette.png")
picture(48, 36, 7).convert("1").save("pictures/dog/one_bit.png")
transform = transforms.Compose([transforms.Resize(18), transforms.CenterCrop(16)])
files = []
for folder in ("cat", "dog"):
    names = sorted(os.listdir(f"pictures/{folder}"))
    files += [((2 * i + 1) / (2 * len(names)), folder, name) for i, name in enumerate(names)]
made = [np.asarray(transform(Image.open(f"pictures/{c}/{n}").convert("RGB"))).transpose(2, 0, 1) for _, c, n in sorted(files)]
np.save("pictures/expected.npy", np.stack(made))

# Kinds that other libraries decode; expected.npy has torchvision's results.
for folder in ("bmp", "tif", "webp"):
    os.makedirs(f"kinds/{folder}", exist_ok=True)
picture(23, 18, 8).save("kinds/bmp/true.bmp")
picture(23, 18, 9).quantize(200).save("kinds/bmp/palette.bmp")
picture(23, 18, 10).convert("1").save("kinds/bmp/one_bit.bmp")
solid = picture(23, 18, 11).convert("RGBA")
solid.save("kinds/bmp/four.bmp")
picture(23, 18, 12).save("kinds/webp/lossless.webp", lossless=True)
picture(48, 36, 13).save("kinds/webp/lossy.webp", quality=80)
seen = picture(23, 18, 14)
seen.putalpha(alpha.resize((23, 18)))
seen.save("kinds/webp/alpha.webp", lossless=True, exact=True)
seen.save("kinds/tif/alpha.tif")
picture(23, 18, 15).save("kinds/tif/lzw.TIFF", compression="tiff_lzw")
picture(23, 18, 16).convert("L").save("kinds/tif/grey.tif", compression="tiff_adobe_deflate")
picture(23, 18, 17).quantize(100).save("kinds/tif/palette.tif")
made = [np.asarray(transform(Image.open(f"kinds/{c}/{n}").convert("RGB"))).transpose(2, 0, 1)
        for c in ("bmp", "tif", "webp") for n in sorted(os.listdir(f"kinds/{c}"))]
np.save("kinds/expected.npy", np.stack(made))

for folder in ("jpg", "png"):
    os.makedirs(f"turned/{folder}", exist_ok=True)


def turned(upright, orientation, name, **how):
    """The image as a camera held in this orientation stores it."""
    exif = Image.Exif()
    exif[0x0112] = orientation
    back = {6: 8, 8: 6}.get(orientation, orientation)  # all others are their own inverse
    exif_back = Image.Exif()
    exif_back[0x0112] = back
    stored = upright.copy()
    stored.info["exif"] = exif_back.tobytes()
    stored = ImageOps.exif_transpose(stored)
    stored.info.pop("exif", None)
    stored.save(name, exif=exif, **how)
    with Image.open(name) as image:
        again = ImageOps.exif_transpose(image)
        assert again.size == upright.size
        assert name.endswith("jpg") or np.array_equal(np.asarray(again), np.asarray(upright))


upright = picture(30, 23, 8)
for i in range(1, 9):
    turned(upright, i, f"turned/png/{i}.png")
    turned(upright, i, f"turned/jpg/{i}.jpg", quality=85)
turned(picture(1200, 900, 9).crop((420, 330, 620, 480)), 6, "turned/jpg/large.jpg", quality=50)
made = [ImageOps.exif_transpose(Image.open(f"turned/jpg/{n}.jpg")) for n in [*range(1, 9), "large"]]
np.save("turned/jpg/expected.npy", np.stack([np.asarray(transform(image)).transpose(2, 0, 1) for image in made]))
