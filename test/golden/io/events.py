#!/usr/bin/env python3
"""TensorBoard event files, read and written once more with nothing but the standard library.

  events.py FILE        print one line per scalar or text: step, tag, value; checks every length and checksum
  events.py --make OUT  write the file that test/io/test_events.c compares with, byte by byte

The format: TFRecord framing (tensorflow/core/lib/io/record_writer.h) around Event messages
(tensorflow/core/util/event.proto)."""
import struct
import sys

TABLE = []
for byte in range(256):
    for _ in range(8):
        byte = byte >> 1 ^ (0x82F63B78 if byte & 1 else 0)
    TABLE.append(byte)


def crc32c(data):
    crc = 0xFFFFFFFF
    for byte in data:
        crc = crc >> 8 ^ TABLE[(crc ^ byte) & 0xFF]
    return crc ^ 0xFFFFFFFF


def masked(data):
    crc = crc32c(data)
    return ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF


def varint(value):
    value &= (1 << 64) - 1
    out = b""
    while value > 127:
        out += bytes([value & 127 | 128])
        value >>= 7
    return out + bytes([value])


def message(*fields):
    out = b""
    for number, value in fields:
        if isinstance(value, bytes):
            out += varint(number << 3 | 2) + varint(len(value)) + value
        elif isinstance(value, tuple):                     # ("d", number) or ("f", number)
            out += varint(number << 3 | (1 if value[0] == "d" else 5)) + struct.pack("<" + value[0], value[1])
        else:
            out += varint(number << 3) + varint(value)
    return out


def record(data):
    size = struct.pack("<Q", len(data))
    return size + struct.pack("<I", masked(size)) + data + struct.pack("<I", masked(data))


def make(path):
    def event(time, step, *fields):
        return record(message((1, ("d", time)), *(((2, step),) if step else ()), *fields))

    def summary(*scalars):
        return (5, message(*((1, message((1, tag.encode()), (2, ("f", value)))) for tag, value in scalars)))

    long_tag = "eval/validation/" + "recall_at_" * 20 + "1"
    with open(path, "wb") as out:
        out.write(event(1700000000.5, 0, (3, b"brain.Event:2")))
        out.write(event(1700000000.5, 300, (7, message((1, 1)))))
        out.write(event(1700000001.25, 301, summary(("loss/total", 0.75))))
        code = b"    a: 1\n    \n    b: [2]\n"
        tensor = message((1, 7), (2, message((2, message((1, 1))))), (8, code))
        value = message((1, b"recipe"), (9, message((1, message((1, b"text"))))), (8, tensor))
        out.write(event(1700000001.75, 0, (5, message((1, value)))))
        out.write(event(1700000002.0, 1 << 40, summary(("terms/binomial", -1e-3), ("lr", 1e-5), (long_tag, 61.25))))


def parse(data):
    at, out = 0, []

    def take_varint():
        nonlocal at
        value = shift = 0
        while True:
            byte = data[at]
            at += 1
            value |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return value

    while at < len(data):
        key = take_varint()
        wire = key & 7
        if wire == 0:
            value = take_varint()
        else:
            n = {1: 8, 5: 4}.get(wire) or take_varint()
            value = data[at:at + n]
            assert len(value) == n, "a field runs over the end"
            at += n
        out.append((key >> 3, value))
    return out


def read(path):
    data, at = open(path, "rb").read(), 0
    while at < len(data):
        (n,) = struct.unpack_from("<Q", data, at)
        assert struct.unpack_from("<I", data, at + 8)[0] == masked(data[at:at + 8]), "wrong checksum of a length"
        body = data[at + 12:at + 12 + n]
        assert struct.unpack_from("<I", data, at + 12 + n)[0] == masked(body), "wrong checksum of a record"
        at += 16 + n
        fields = dict(parse(body))
        step = fields.get(2, 0)
        if 3 in fields:
            print("version", fields[3].decode())
        if 7 in fields:
            print(step, "session", dict(parse(fields[7]))[1])
        for _, value in parse(fields.get(5, b"")):
            scalar = dict(parse(value))
            if 8 in scalar:
                print(step, scalar[1].decode(), dict(parse(scalar[8]))[8].decode())
            else:
                print(step, scalar[1].decode(), "%.9g" % struct.unpack("<f", scalar[2]))


if sys.argv[1] == "--make":
    make(sys.argv[2])
else:
    read(sys.argv[1])
