"""The data of the metrics' tests, for scikit-learn (make_fixtures.py) and for ampc (metrics.py).
Logits are multiples of 1/64 below 8, so they are exact in f16, and 16 bits give the same classes as f32."""


def words(seed):
    """An endless sequence of numbers from 0 to 2^32 - 1: the step of PCG, whose high bits are random enough."""
    state = seed * 0x9E3779B97F4A7C15 + 1
    while True:
        state = (state * 6364136223846793005 + 1442695040888963407) & (1 << 64) - 1
        yield state >> 32


def logits(seed, n):
    row = words(seed)
    return [(next(row) % 1024 - 512) / 64 for _ in range(n)]


def labels(seed, n, classes, ignored=None):
    """Random labels; every ninth one is `ignored`, if it is given."""
    row = words(seed + 1000)
    found = [next(row) % classes for _ in range(n)]
    return [ignored if ignored is not None and i % 9 == 4 else y for i, y in enumerate(found)]


def axis_of_classes(x, n, classes, pixels):
    """Converts [n, classes, pixels] to a list with the logits of all classes for each pixel of each sample."""
    return [[x[(i * classes + c) * pixels + p] for c in range(classes)] for i in range(n) for p in range(pixels)]


def classes_data():
    """53 samples of 5 classes; class 3 is neither a label nor a prediction."""
    x, y = logits(1, 53 * 5), labels(1, 53, 5)
    for i in range(53):
        x[5 * i + 3] = -9.0
        y[i] = 4 if y[i] == 3 else y[i]
        x[5 * i + y[i]] += 3.0 * (i % 3 == 0)  # some predictions are right
    return x, y


def binary_data():
    x, y = logits(2, 53), labels(2, 53, 2)
    return [v + 2.0 * (2 * t - 1) for v, t in zip(x, y)], y


def ranked_data():
    """The same with scores that are multiples of 1/32 below 2.5, so that different scores are in different bins."""
    x, y = binary_data()
    return [v * 64 // 8 / 32 for v in x], y


def pixels_data():
    """7 images of 5 x 6 pixels and 3 classes; some pixels are ignored."""
    x, y = logits(3, 7 * 3 * 30), labels(3, 7 * 30, 3, ignored=255)
    for i in range(7 * 30):
        if y[i] < 3 and i % 2:
            x[(i // 30 * 3 + y[i]) * 30 + i % 30] += 4.0
    return x, y
