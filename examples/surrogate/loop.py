#!/usr/bin/env python3
"""The loop of loop.c in Python, by ctypes and numpy.
    loop.py LIBRARY [CHECKPOINT]
LIBRARY is the shared library that CMakeLists.txt builds: libsurrogate.so."""
import ctypes
import sys

import numpy as np

N, STEPS, EVALUATIONS = 64, 2000, 20
library = ctypes.CDLL(sys.argv[1])
library.surrogate_error.restype = ctypes.c_char_p


class Metrics(ctypes.Structure):  # struct surrogate_metrics
    _fields_ = [("loss", ctypes.c_double)]


class EvalMetrics(ctypes.Structure):  # struct surrogate_eval_metrics
    _fields_ = [("error", ctypes.c_double)]


def call(name, *arguments):
    if getattr(library, "surrogate_" + name)(*arguments):
        raise RuntimeError(library.surrogate_error().decode())


def run(name, net, x, y):
    """Calls surrogate_step or surrogate_eval with arrays [N, 3] and [N, 1]."""
    x, y = np.ascontiguousarray(x, np.float32), np.ascontiguousarray(y, np.float32)
    assert x.shape == (len(x), 3) and y.shape == (len(x), 1)
    pointer = ctypes.POINTER(ctypes.c_float)
    call(name, net, ctypes.c_int64(len(x)), x.ctypes.data_as(pointer), y.ctypes.data_as(pointer))


def draw(random):
    x = random.uniform(-1, 1, (N, 3))
    return x, np.sin(3 * x[:, :1]) * np.cos(2 * x[:, 1:2]) + x[:, 2:] ** 2


random, net, mean = np.random.default_rng(1), ctypes.c_void_p(), Metrics()
call("create", b"auto", ctypes.c_uint64(1), None, ctypes.byref(net))
for step in range(1, STEPS + 1):
    run("step", net, *draw(random))
    if step % 500 == 0:
        call("get_metrics", net, ctypes.byref(mean))
        print(f"step {step}: loss {mean.loss:.5f}")
for _ in range(EVALUATIONS):
    run("eval", net, *draw(random))
error = EvalMetrics()
call("get_eval_metrics", net, ctypes.byref(error))
print(f"error {error.error:.5f}")
if len(sys.argv) > 2:
    call("save", net, sys.argv[2].encode())
library.surrogate_close(net)
