"""Writes GGUF files, also damaged ones, and reads them, without any package."""
import struct

U32, I32, F32, BOOL, TEXT, LIST, U64 = 4, 5, 6, 7, 8, 9, 10


def text(value):
    data = value if isinstance(value, bytes) else value.encode()
    return struct.pack("<Q", len(data)) + data


def value(kind, v):
    if kind == TEXT:
        return text(v)
    if kind == LIST:
        own, items = v
        return struct.pack("<IQ", own, len(items)) + b"".join(value(own, item) for item in items)
    return struct.pack({U32: "<I", I32: "<i", F32: "<f", BOOL: "<?", U64: "<Q"}[kind], v)


def pair(key, kind, v):
    return text(key) + struct.pack("<I", kind) + value(kind, v)


def info(name, dims, kind, offset):
    return text(name) + struct.pack("<I", len(dims)) + b"".join(struct.pack("<Q", n) for n in dims) + struct.pack("<IQ", kind, offset)


def gguf(pairs, infos=(), data=b"", version=3, n_pairs=None, n_infos=None):
    head = b"GGUF" + struct.pack("<IQQ", version, len(infos) if n_infos is None else n_infos,
                                 len(pairs) if n_pairs is None else n_pairs)
    head += b"".join(pairs) + b"".join(infos)
    return head + bytes(-len(head) % 32) + data


LLAMA = [pair("general.architecture", TEXT, "llama"), pair("llama.block_count", U32, 1), pair("llama.context_length", U32, 16),
         pair("llama.embedding_length", U32, 8), pair("llama.feed_forward_length", U32, 8), pair("llama.attention.head_count", U32, 2)]
VOCAB = [pair("llama.vocab_size", U32, 20)]


def read(data):
    """The metadata of a file, and its tensors: name -> (number of the type, shape, bytes)."""
    at = 24
    tensors, pairs = struct.unpack("<QQ", data[8:24])

    def take(form):
        nonlocal at
        at += struct.calcsize(form)
        return struct.unpack(form, data[at - struct.calcsize(form):at])[0]

    def take_text():
        nonlocal at
        n = take("<Q")
        at += n
        return data[at - n:at].decode()

    def take_value(kind):
        if kind == TEXT:
            return take_text()
        if kind == LIST:
            own = take("<I")
            return [take_value(own) for _ in range(take("<Q"))]
        return take({U32: "<I", I32: "<i", F32: "<f", BOOL: "<?", U64: "<Q"}[kind])

    meta = {}
    for _ in range(pairs):
        key = take_text()
        meta[key] = take_value(take("<I"))
    infos = [(take_text(), [take("<Q") for _ in range(take("<I"))][::-1], take("<I"), take("<Q")) for _ in range(tensors)]
    begin = at + -at % 32
    out = {}
    for name, shape, kind, offset in infos:
        elements = 1
        for n in shape:
            elements *= n
        assert offset % 32 == 0, f"{name}: its offset is no multiple of the alignment"
        size = elements // 32 * 34 if kind == 8 else elements * {0: 4, 1: 2, 30: 2}[kind]
        out[name] = kind, shape, data[begin + offset:begin + offset + size]
        assert len(out[name][2]) == size, f"{name} ends behind the end of the file"
    return meta, out
