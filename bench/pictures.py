#!/usr/bin/env python3
"""Makes a folder of JPEG pictures with common sizes of photographs, such as 500 x 375, in 10 classes.

usage: pictures.py FOLDER COUNT [PHOTO ...]
PHOTO: photographs, such as the samples of scikit-learn and scikit-image. Without them pictures are noise of all
frequencies, which JPEG compresses to about as many bytes. Needs Pillow and NumPy."""
import os
import sys

import numpy as np
from PIL import Image

SIZES = [(500, 375), (375, 500), (500, 333), (500, 400), (640, 480)]


def made(random, width, height):
    """Noise with similar power in each octave and correlated colours, like a photograph."""
    picture = np.zeros((height, width, 3))
    for octave in range(2, 10):
        cells = 1 << octave
        small = random.normal(size=(max(2, cells * height // width), cells, 1)) + 0.3 * random.normal(
            size=(max(2, cells * height // width), cells, 3))
        planes = [np.asarray(Image.fromarray(small[:, :, c].astype(np.float32)).resize((width, height), Image.BICUBIC))
                  for c in range(3)]
        picture += np.stack(planes, 2) * 40 / (1 << octave) ** 0.6
    return Image.fromarray(np.clip(picture + 128, 0, 255).astype(np.uint8))


def taken(random, photos, width, height):
    """A crop of a photograph, at least half as large as the result."""
    photo = photos[random.integers(len(photos))]
    w = int(random.uniform(0.6, 1) * min(photo.width, photo.height * width / height))
    h = w * height // width
    x, y = random.integers(photo.width - w + 1), random.integers(photo.height - h + 1)
    return photo.crop((x, y, x + w, y + h)).resize((width, height), Image.LANCZOS)


def main():
    folder, count, files = sys.argv[1], int(sys.argv[2]), sys.argv[3:]
    random = np.random.default_rng(1)
    photos = [Image.open(f).convert("RGB") for f in files]
    for i in range(count):
        place = os.path.join(folder, f"class{i % 10}")
        os.makedirs(place, exist_ok=True)
        width, height = SIZES[random.integers(len(SIZES))]
        picture = taken(random, photos, width, height) if photos else made(random, width, height)
        picture.save(os.path.join(place, f"{i:06}.jpg"), quality=90)


main()
