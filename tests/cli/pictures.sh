#!/usr/bin/env bash
# amp infer --png: grids and single images, decoded by a PNG decoder in Python and by ampc's own;
# errors.
#   pictures.sh AMPC AMP
. "$(dirname "$0")/../faults/lib.sh"
cd "$work" || exit 1
infer() { timeout 60 "$amp" infer -q --device cpu "$@"; }
cat >png.py <<'PY'
"""A PNG decoder written from the specification, and the expected grids."""
import struct, sys, zlib


def png(path):
    """Width, height, channels and the bytes of the pixels."""
    b, at, data = open(path, "rb").read(), 8, b""
    assert b[:8] == b"\x89PNG\r\n\x1a\n"
    while at < len(b):
        n, kind = struct.unpack(">I4s", b[at:at + 8])
        body = b[at + 8:at + 8 + n]
        assert zlib.crc32(kind + body) == struct.unpack(">I", b[at + 8 + n:at + 12 + n])[0], kind
        if kind == b"IHDR":
            width, height, depth, colour, *rest = struct.unpack(">IIBBBBB", body)
            assert depth == 8 and colour in (0, 2) and rest == [0, 0, 0]
        data += body if kind == b"IDAT" else b""
        at += n + 12
    assert kind == b"IEND"
    c = 1 if colour == 0 else 3
    raw, row, out = zlib.decompress(data), width * c, bytearray()
    assert len(raw) == height * (row + 1)
    above = bytearray(row)
    for y in range(height):
        how, line = raw[y * (row + 1)], bytearray(raw[y * (row + 1) + 1:(y + 1) * (row + 1)])
        for i in range(row):
            left, up, corner = line[i - c] if i >= c else 0, above[i], above[i - c] if i >= c else 0
            p = left + up - corner
            near = min((abs(p - left), 0, left), (abs(p - up), 1, up), (abs(p - corner), 2, corner))[2]
            line[i] = line[i] + (0, left, up, (left + up) // 2, near)[how] & 255
        out += line
        above = line
    return width, height, c, bytes(out)


def byte(v, low, high):
    return int(min(max((v - low) / (high - low), 0), 1) * 255 + 0.5)


def grid(pixels, n, c, h, w, columns):
    """The images pixels(sample, channel, y, x) as a grid like torchvision's make_grid, with two black pixels around each."""
    columns = min(n, columns)
    width, height = columns * (w + 2) + 2, -(-n // columns) * (h + 2) + 2
    out = bytearray(width * height * c)
    for i in range(n):
        for y in range(h):
            for x in range(w):
                for k in range(c):
                    row, column = i // columns * (h + 2) + 2 + y, i % columns * (w + 2) + 2 + x
                    out[(row * width + column) * c + k] = pixels(i, k, y, x)
    return width, height, c, bytes(out)
PY
has() { # has NAME PYTHON: the expression must be true; it may use the functions of png.py
  python3 -c "from png import *
assert $2" && echo "ok: $1" || failed "$1"
}

# sample i, channel c, row y, column x: multiples of 1/512 from 0 to below 1, and of 1/256 from -1 to below 1
cat >job.amp <<'JOB'
const N = 3
def ramp(n: int, c: int) { return (arange(n * c * 35).view(n, c, 5, 7) * 37 % 512).to(f32) / 512.0 }
infer grey() -> f32[11, 1, 5, 7] { return ramp(11, 1) }
infer colour() -> f32[4, 3, 5, 7] { return ramp(4, 3) }
infer signed() -> f32[11, 5, 7] { return (ramp(11, 1) * 2.0 - 1.0).squeeze(1) }
infer one() -> f32[1, 3, 5, 7] { return ramp(1, 3) }
infer bytes() -> u8[4, 3, 5, 7] { return (ramp(4, 3) * 256.0).to(u8) }
infer square() -> u8[4, 3, 6, 6] { return (arange(432).view(4, 3, 6, 6) * 7 % 256).to(u8) }
infer halves() { return (ramp(4, 3) * 2.0).to(f16), ramp(4, 3).to(bf16) }
infer lost() { return where(ramp(2, 1) > 0.9, nan, ramp(2, 1)) }
infer batches(x: f32[N, 1]) { return (x.view(N, 1, 1, 1) / 8.0).expand(N, 1, 5, 7) }
infer number() { return ramp(1, 1).mean() }
infer two() { return ramp(3, 2) }
infer classes() { return arange(70).view(2, 5, 7) }
infer drawn() { return rand(2, 1, 5, 7) }
infer noisy(x: f32[N, 1]) { return x * 0.0 + rand(N, 1) }
infer huge() { return zeros(1, 1, 1, 1000001) }
JOB
python3 - <<'PY'
import struct
head = "{'descr': '<f4', 'fortran_order': False, 'shape': (8, 1), }".ljust(117) + "\n"
open("x.npy", "wb").write(b"\x93NUMPY\1\0" + struct.pack("<H", len(head)) + head.encode() + struct.pack("<8f", *range(8)))
PY
ramp='lambda i, k, y, x: byte((((i * C + k) * 5 + y) * 7 + x) * 37 % 512 / 512, 0, 1)'
passes "a grid" infer job.amp --block grey --png grey.png
has "a grid" "png('grey.png') == grid(${ramp//C/1}, 11, 1, 5, 7, 8)"
[ -s out ] && failed "a grid prints nothing"
passes "--columns" infer job.amp --block grey --png narrow.png --columns 3
has "--columns" "png('narrow.png') == grid(${ramp//C/1}, 11, 1, 5, 7, 3)"
passes "colours" infer job.amp --block colour --png colour.png
has "colours" "png('colour.png') == grid(${ramp//C/3}, 4, 3, 5, 7, 8)"
passes "one picture has no frame" infer job.amp --block one --png one.png
has "one picture" "png('one.png')[:3] == (7, 5, 3) and png('one.png')[3][:6] == bytes(byte(i * 37 % 512 / 512, 0, 1) for i in (0, 35, 70, 1, 36, 71))"
passes "--range" infer job.amp --block signed --png signed.png --range -1,1
has "--range" "png('signed.png') == png('grey.png')"
grep -q . err && failed "--range: warned $(cat err)"
passes "numbers outside" infer job.amp --block signed --png cut.png
grep -Eq 'warning: --png cut.png: [45][0-9] % of the numbers are outside 0 to 1 and are clipped: use --range=-1,1' err || failed "numbers outside: $(cat err)"
passes "a range that is given" infer job.amp --block signed --png cut.png --range=-0.5,0.25
grep -q 'outside -0.5 to 0.25 and are clipped; they range from -1 to 0.99' err || failed "a range that is given: $(cat err)"
refuses "a range too wide" 2 'larger than the largest double' infer job.amp --block signed --png cut.png --range=-1.7e308,1.7e308
passes "nan" infer job.amp --block lost --png lost.png
grep -Eq 'lost.png: [0-9]+ numbers \(.* %\) are nan and become black' err || failed "nan: $(cat err)"
has "nan" "png('lost.png') == grid(lambda *at: (lambda v: 0 if v >= 230 else v)((${ramp//C/1})(*at)), 2, 1, 5, 7, 8)"
passes "u8, f16 and bf16" infer job.amp --block bytes --png bytes.png
has "u8" "png('bytes.png') == grid(lambda i, k, y, x: (((i * 3 + k) * 5 + y) * 7 + x) * 37 % 512 // 2, 4, 3, 5, 7, 8)"
passes "several results" infer job.amp --block halves --png halves.0=0.png --png halves.1=1.png --output halves.1=1.npy --range 0,2
has "f16" "png('0.png') == png('colour.png')"
has "bf16 and NPY of the same" "png('1.png')[:3] == (38, 9, 3)" && [ -s 1.npy ] || failed "NPY beside PNG"
passes "batches" infer job.amp --block batches --input x.npy --png batches.png
has "the last batch is not full" "png('batches.png') == grid(lambda i, *_: byte(i / 8, 0, 1), 8, 1, 5, 7, 8)"

# ---- one file for each image, read back by ampc's decoder --------------------------------------------------
passes "a folder" infer job.amp --block bytes --png each/
[ "$(ls each | xargs)" = "000000.png 000001.png 000002.png 000003.png" ] || failed "a folder: $(ls each)"
has "a folder" "all(png(f'each/{i:06}.png') == (7, 5, 3, bytes((((i * 3 + k) * 5 + y) * 7 + x) * 37 % 512 // 2 for y in range(5) for x in range(7) for k in range(3))) for i in range(4))"
echo 'infer same(x: u8[4, 3, 6, 6]) { return x }' >back.amp
passes "squares" infer job.amp --block square --png squares/
passes "our own reader" infer back.amp --data 'images("squares", 6, classes=["."])' --png back.png
has "our own reader" "png('back.png') == grid(lambda i, k, y, x: (((i * 3 + k) * 6 + y) * 6 + x) * 7 % 256, 4, 3, 6, 6, 8)"
passes "a folder that is there" infer job.amp --block batches --input x.npy --png each
[ "$(ls each | wc -l)" = 8 ] || failed "a folder that is there: $(ls each)"

# ---- random images ----------------------------------------------------------------------
passes "samples" infer job.amp --block drawn --png a.png
passes "samples again" infer job.amp --block drawn --png b.png
passes "another seed" infer job.amp --block drawn --png c.png --seed 1
cmp -s a.png b.png || failed "the same seed gives other samples"
cmp -s a.png c.png && failed "another seed gives the same samples"
has "samples of a batch differ" "(lambda p: p[3][2 * p[0]:3 * p[0]][2:9] != p[3][2 * p[0]:3 * p[0]][11:18])(png('a.png'))"
passes "each batch draws its own" infer job.amp --block noisy --input x.npy
[ "$(sort -u out | wc -l)" = 8 ] || failed "batches draw the same: $(cat out)"

# ---- errors -------------------------------------------------------------------------------
u() { refuses "$1" 2 "$2" "${@:3}"; }
u "a number" 'number is f32\[\]; pictures are float or u8\[N, 1, height, width\]' infer job.amp --block number --png x.png
u "two channels" 'two is f32\[3, 2, 5, 7\]; pictures are' infer job.amp --block two --png x.png
u "classes" 'classes is i64\[2, 5, 7\]; pictures are' infer job.amp --block classes --png x.png
u "too wide" 'huge is f32\[1, 1, 1, 1000001\], of more than' infer job.amp --block huge --png x.png
u "another name" '--png x.jpg: expected a name that ends in .png, or in / for' infer job.amp --block grey --png x.jpg
u "twice" '--png b.png: grey is written to another file already' infer job.amp --block grey --png a.png --png b.png
u "no such result" '--png gray=x.png: there is no result gray; the first is grey' infer job.amp --block grey --png gray=x.png
u "which result" '--png x.png: there are 2 results: write NAME=FILE, as halves.0=x.png' infer job.amp --block halves --png x.png
u "a range of bytes" 'bytes is u8, from 0 to 255 already' infer job.amp --block bytes --png x.png --range 0,1
u "a range of one number" '--range 1: expected two numbers, as --range=-1,1' infer job.amp --block grey --png x.png --range 1
u "a range without end" '--range 0,inf: expected two numbers' infer job.amp --block grey --png x.png --range 0,inf
u "a range upside down" '--range 1,0: the number for black comes first and must be the smaller one: 1 is not less than 0' infer job.amp --block grey --png x.png --range 1,0
u "a range of nothing" '--range 1,1: the number for black comes first and must be the smaller one: 1 is not less than 1' infer job.amp --block grey --png x.png --range 1,1
u "a range without pictures" '--range needs --png' infer job.amp --block grey --range 0,1
u "columns without pictures" '--columns needs --png' infer job.amp --block grey --columns 3 --output x.npy
u "no column" 'columns' infer job.amp --block grey --png x.png --columns 0
refuses "nowhere" 3 'no/where.png' infer job.amp --block grey --png no/where.png
refuses "no folder" 3 'cannot create folder no/where/' infer job.amp --block grey --png no/where/
[ -e x.png ] && failed "a refused command leaves a file"
[ $failures -eq 0 ]
