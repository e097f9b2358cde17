#!/usr/bin/env python3
"""read_events.py DIR [--tensorboard]: prints the scalars of a log folder as {tag: [[step, value], ..]} in JSON. By default
it uses its own small reader, written from the format descriptions, which checks every checksum; with --tensorboard it uses
TensorBoard's (pip install tensorboard)."""

import glob
import json
import struct
import sys


def crc32c(data):
    table = []
    for n in range(256):
        for _ in range(8):
            n = n >> 1 ^ (0x82F63B78 if n & 1 else 0)
        table.append(n)
    crc = 0xFFFFFFFF
    for byte in data:
        crc = table[(crc ^ byte) & 255] ^ crc >> 8
    return crc ^ 0xFFFFFFFF


def masked(data):
    crc = crc32c(data)
    return ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF


def frames(data):
    at = 0
    while at < len(data):
        (size,) = struct.unpack_from("<Q", data, at)
        (check,) = struct.unpack_from("<I", data, at + 8)
        assert check == masked(data[at : at + 8]), f"checksum of a length at {at}"
        body = data[at + 12 : at + 12 + size]
        (check,) = struct.unpack_from("<I", data, at + 12 + size)
        assert len(body) == size and check == masked(body), f"checksum of an event at {at}"
        yield body
        at += 16 + size


def varint(data, at):
    value = shift = 0
    while True:
        byte = data[at]
        value |= (byte & 127) << shift
        at, shift = at + 1, shift + 7
        if byte < 128:
            return value, at


def fields(data):
    at = 0
    while at < len(data):
        key, at = varint(data, at)
        wire = key & 7
        if wire == 0:
            value, at = varint(data, at)
        elif wire == 2:
            size, at = varint(data, at)
            value, at = data[at : at + size], at + size
        else:
            size = 8 if wire == 1 else 4
            (value,) = struct.unpack_from("<d" if wire == 1 else "<f", data, at)
            at += size
        yield key >> 3, value


def read_own(folder):
    scalars = {}
    files = [[dict(fields(body)) for body in frames(open(path, "rb").read())]
             for path in glob.glob(folder + "/events.out.tfevents.*")]
    for events in sorted(files, key=lambda events: events[0][1]):  # by time: names of one second are not in order
        assert events[0][3] == b"brain.Event:2", "the first event gives the version"
        assert all(e[1] > 1.6e9 for e in events), "wall times"
        for event in events[1:]:
            step = event.get(2, 0)
            if 7 in event:  # a session starts: earlier events of this step and later ones are void
                assert dict(fields(event[7])) == {1: 1}
                scalars = {t: [p for p in s if p[0] < step] for t, s in scalars.items()}
            if 5 in event:
                value = dict(fields(dict(fields(event[5]))[1]))
                scalars.setdefault(value[1].decode(), []).append([step, value[2]])
    return scalars


def read_tensorboard(folder):
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    events = EventAccumulator(folder, size_guidance={"scalars": 0})
    events.Reload()
    return {t: [[e.step, e.value] for e in events.Scalars(t)] for t in events.Tags()["scalars"]}


read = read_tensorboard if "--tensorboard" in sys.argv else read_own
print(json.dumps(read(sys.argv[1]), sort_keys=True))
