#!/usr/bin/env python3
"""Makes folders of PNG files, one for each class, and arrays of images and masks, from Fashion-MNIST.

    pictures.py FOLDER PER_CLASS SIZE

FOLDER/train and FOLDER/val get ten folders each, with colour images of SIZE x SIZE pixels. Each shows one of the clothes,
enlarged by SIZE / 28, bright on dark, in random colours. train_images.npy [n, 1, SIZE, SIZE] has the same clothes in noise,
train_masks.npy [n, SIZE, SIZE] the pixels that belong to them; val has the same files.
"""
import gzip
import os
import random
import struct
import sys
import zlib

DATA = "/usr/share/datasets/fashion-mnist/"


def read(name, head):
    with gzip.open(DATA + name) as f:
        return f.read()[head:]


def png(path, size, rows):
    def chunk(kind, data):
        body = kind + data
        return struct.pack(">I", len(data)) + body + struct.pack(">I", zlib.crc32(body))
    with open(path, "wb") as f:
        f.write(b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", size, size, 8, 2, 0, 0, 0)) +
                chunk(b"IDAT", zlib.compress(b"".join(b"\0" + row for row in rows), 1)) + chunk(b"IEND", b""))


def npy(path, shape, data):
    head = "{'descr': '|u1', 'fortran_order': False, 'shape': %s, }" % (shape,)
    head += " " * (63 - (len(head) + 10) % 64) + "\n"
    with open(path, "wb") as f:
        f.write(b"\x93NUMPY\1\0" + struct.pack("<H", len(head)) + head.encode() + data)


def main():
    folder, per_class, size = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    near = [i * 28 // size for i in range(size)]
    for split, name in (("train", "train"), ("val", "t10k")):
        draw = random.Random(split)
        images, labels = read(name + "-images-idx3-ubyte.gz", 16), read(name + "-labels-idx1-ubyte.gz", 8)
        count, noisy, masks = [0] * 10, bytearray(), bytearray()
        for i, label in enumerate(labels):
            if count[label] == per_class:
                continue
            grey = [[images[784 * i + 28 * y + x] for x in near] for y in near]
            ink, paper = ([draw.randrange(low, low + 96) for _ in range(3)] for low in (160, 0))
            os.makedirs(f"{folder}/{split}/{label}", exist_ok=True)
            png(f"{folder}/{split}/{label}/{count[label]:04}.png", size,
                [bytes((a * g + b * (255 - g)) // 255 for g in row for a, b in zip(ink, paper)) for row in grey])
            noisy += bytes(max(0, min(255, g // 2 + draw.randrange(128))) for row in grey for g in row)
            masks += bytes(g > 40 for row in grey for g in row)
            count[label] += 1
        npy(f"{folder}/{split}_images.npy", (sum(count), 1, size, size), bytes(noisy))
        npy(f"{folder}/{split}_masks.npy", (sum(count), size, size), bytes(masks))


if __name__ == "__main__":
    main()
