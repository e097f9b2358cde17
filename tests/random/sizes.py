"""Shapes as text: expressions that give a value another shape, and pieces of calls."""
import itertools

SIZES = [1, 1, 1, 2, 3, 4, 5, 6]
MOST_ELEMENTS = 3000


def count(dims):
    n = 1
    for d in dims:
        n *= d
    return n


def closing(text, at):
    """The index of the bracket that closes the one at `at`."""
    depth = 0
    for k in range(at, len(text)):
        depth += (text[k] in "([{") - (text[k] in ")]}")
        if depth == 0:
            return k
    return len(text)


def split(text):
    """Splits at the commas outside of brackets and strings."""
    parts, depth, quoted, start = [], 0, False, 0
    for k, c in enumerate(text):
        quoted ^= c == '"'
        depth += 0 if quoted else (c in "([{") - (c in ")]}")
        if c == "," and depth == 0 and not quoted:
            parts.append(text[start:k])
            start = k + 1
    return parts + [text[start:]] if text.strip() else []


def broadcastable(rng, dims):
    """A shape that broadcasts against this one."""
    other = [1 if rng.random() < 0.3 else d for d in dims]
    return other[rng.choice([0, 0, 0, 1]) if len(other) > 1 else 0:]


def factors(rng, n):
    """Some sizes whose product is n."""
    dims = []
    while n > 1 and len(dims) < 4:
        d = rng.choice([k for k in range(2, n + 1) if n % k == 0])
        dims.append(d)
        n //= d
    for _ in range(rng.choice([0, 0, 1, 1, 2])):
        dims.insert(rng.randint(0, len(dims)), 1)
    return dims + ([n] if n > 1 else [])


def fit(rng, text, have, want):
    """An expression of shape `want` from the value `text` of shape `have`."""
    if have == want:
        return text
    n, m = count(have), count(want)
    if n == m:
        orders = [list(o) for o in itertools.permutations(range(len(have))) if [have[k] for k in o] == want] if 1 < len(have) < 5 else []
        if orders and rng.random() < 0.6:
            return f"permute({text}, {rng.choice(orders)})"
        return f"{text}.view({want})" if rng.random() < 0.7 else f"reshape({text}, {want})"
    if len(have) == len(want) and all(a >= b for a, b in zip(have, want)) and rng.random() < 0.7:
        starts = [rng.randint(0, a - b) for a, b in zip(have, want)]
        return f"{text}[{', '.join(f'{s}:{s + b}' if a != b else ':' for s, a, b in zip(starts, have, want))}]"
    if len(have) == len(want) and all(a in (1, b) for a, b in zip(have, want)) and rng.random() < 0.7:
        return f"{text}.expand({want})"
    flat = text if len(have) == 1 else f"{text}.view({n})"
    if n < m:
        flat = f"{flat}.repeat({-(-m // n)})"
        n *= -(-m // n)
    start = rng.randint(0, n - m) if n > m else 0
    part = flat if n == m else f"{flat}[{start}:{start + m}]"
    return part if want == [m] else f"{part}.view({want})"


def view(rng, text, dims):
    """A view of a value, with its shape."""
    rank = len(dims)
    axis = rng.randrange(rank) if rank else 0
    kinds = ["view", "view", "unsqueeze"] + (["slice", "slice", "transpose", "index", "flip", "squeeze", "expand"] if rank else [])
    kind = rng.choice(kinds)
    if kind == "slice":
        start = rng.randrange(dims[axis])
        step = rng.choice([1, 1, 1, 2])
        stop = rng.randint(start + 1, dims[axis])
        subs = [":"] * axis + [f"{start}:{stop}" + (f":{step}" if step > 1 else "")]
        return f"{text}[{', '.join(subs)}]", dims[:axis] + [-(-(stop - start) // step)] + dims[axis + 1:]
    if kind == "index":
        subs = [":"] * axis + [str(rng.choice([rng.randrange(dims[axis]), -1]))]
        return f"{text}[{', '.join(subs)}]", dims[:axis] + dims[axis + 1:]
    if kind == "transpose":
        other, new = rng.randrange(rank), list(dims)
        new[axis], new[other] = new[other], new[axis]
        return f"{text}.transpose({axis}, {other})", new
    if kind == "flip":
        return f"flip({text}, [{axis}])", dims
    if kind == "squeeze" and 1 in dims:
        axis = dims.index(1)
        return f"{text}.squeeze({axis})", dims[:axis] + dims[axis + 1:]
    if kind == "expand" and 1 in dims and count(dims) < 200:
        axis, size = dims.index(1), rng.choice([2, 3])
        new = dims[:axis] + [size] + dims[axis + 1:]
        return f"{text}.expand({new})", new
    if kind == "unsqueeze" and rank < 5:
        axis = rng.randint(0, rank)
        return f"{text}.unsqueeze({axis})", dims[:axis] + [1] + dims[axis:]
    new = factors(rng, count(dims))
    return f"{text}.view({new})", new
