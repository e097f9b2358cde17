"""Writes GGUF files, also damaged ones, without any package."""
import struct

U32, F32, BOOL, TEXT, LIST, U64 = 4, 6, 7, 8, 9, 10


def text(value):
    data = value if isinstance(value, bytes) else value.encode()
    return struct.pack("<Q", len(data)) + data


def value(kind, v):
    if kind == TEXT:
        return text(v)
    if kind == LIST:
        own, items = v
        return struct.pack("<IQ", own, len(items)) + b"".join(value(own, item) for item in items)
    return struct.pack({U32: "<I", F32: "<f", BOOL: "<?", U64: "<Q"}[kind], v)


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
