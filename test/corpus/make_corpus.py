#!/usr/bin/python3
"""Makes the files under test/corpus: run it in this folder; needs numpy.

The prefix of a name is the outcome the parser must have: ok_ or bad_. The .npy files that are
ok_numpy_* are written by numpy itself. All files are also the fuzzers' seeds.
"""
import json
import os
import struct
import zlib

import numpy as np

HERE = os.path.dirname(os.path.abspath(__file__))


def put(folder, name, data):
    os.makedirs(os.path.join(HERE, folder), exist_ok=True)
    with open(os.path.join(HERE, folder, name), "wb") as f:
        f.write(data if isinstance(data, bytes) else data.encode())


# .npy
values = np.arange(6).reshape(2, 3)
for descr in ["<f4", ">f4", "<f8", ">f8", "<f2", ">f2", "<i4", ">i4", "<i8", ">i8", "|u1", "|i1", "<i2", ">i2", "<u2", "<u4", ">u4", "<u8"]:
    label = descr.replace("<", "le_").replace(">", "be_").replace("|", "")
    os.makedirs(os.path.join(HERE, "npy"), exist_ok=True)
    np.save(os.path.join(HERE, "npy", f"ok_numpy_{label}.npy"), values.astype(descr))
np.save(os.path.join(HERE, "npy", "ok_numpy_scalar.npy"), np.float32(2.5))
np.save(os.path.join(HERE, "npy", "ok_numpy_empty.npy"), np.zeros((0, 4), "<f4"))
np.save(os.path.join(HERE, "npy", "ok_numpy_one_dim.npy"), np.arange(3, dtype="<i8"))
np.save(os.path.join(HERE, "npy", "ok_numpy_fortran.npy"), np.asfortranarray(values.astype("<f4")))
np.save(os.path.join(HERE, "npy", "ok_numpy_fortran_be_i2.npy"), np.asfortranarray(values.astype(">i2")))
np.save(os.path.join(HERE, "npy", "ok_numpy_fortran_empty.npy"), np.asfortranarray(np.zeros((0, 3), "<f4")))
np.save(os.path.join(HERE, "npy", "ok_numpy_bool.npy"), values.astype("?"))
np.save(os.path.join(HERE, "npy", "bad_numpy_u8_large.npy"), np.array([1, 2**63], "<u8"))
np.save(os.path.join(HERE, "npy", "ok_numpy_fortran_three.npy"), np.asfortranarray(np.arange(24).reshape(2, 3, 4)))
np.save(os.path.join(HERE, "npy", "bad_numpy_complex.npy"), values.astype("<c8"))
np.save(os.path.join(HERE, "npy", "bad_numpy_text.npy"), np.array(["a", "bc"]))
np.save(os.path.join(HERE, "npy", "bad_numpy_records.npy"), np.zeros(2, [("x", "<f4"), ("y", "<i4")]))
with open(os.path.join(HERE, "npy", "ok_numpy_version2.npy"), "wb") as f:
    np.lib.format.write_array(f, values.astype("<f4"), version=(2, 0))
with open(os.path.join(HERE, "npy", "ok_numpy_version3.npy"), "wb") as f:
    np.lib.format.write_array(f, values.astype("<f4"), version=(3, 0))


def npy(header, data=b"", version=1, length=None):
    text = header.encode("latin1")
    n = len(text) if length is None else length
    return b"\x93NUMPY" + bytes([version, 0]) + struct.pack("<H" if version == 1 else "<I", n) + text + data


def dict_text(descr="'<f4'", order="False", shape="(2,)", extra=""):
    return "{'descr': %s, 'fortran_order': %s, 'shape': %s, %s}\n" % (descr, order, shape, extra)


eight = bytes(8)
put("npy", "ok_other_order.npy", npy('{"shape": (2,), "fortran_order": False, "descr": "<f4"}', eight))
put("npy", "ok_native_order.npy", npy(dict_text("'=f4'"), eight))
put("npy", "bad_empty_file.npy", b"")
put("npy", "bad_magic.npy", b"\x94NUMPY\x01\x00" + bytes(60))
put("npy", "bad_magic_only.npy", b"\x93NUMPY")
put("npy", "bad_version.npy", npy(dict_text(), eight, version=4))
put("npy", "bad_length_lie.npy", npy(dict_text(), eight, length=60000))
put("npy", "bad_length_huge.npy", npy(dict_text(), eight, version=2, length=0xFFFFFFFF))
put("npy", "bad_length_short.npy", npy(dict_text(), eight, length=20))
put("npy", "bad_length_zero.npy", npy("", eight))
put("npy", "bad_data_short.npy", npy(dict_text(), eight[:7]))
put("npy", "bad_data_long.npy", npy(dict_text(), eight + b"x"))
put("npy", "bad_shape_overflow.npy", npy(dict_text(shape="(4294967296, 4294967296, 4294967296)"), eight))
put("npy", "bad_shape_overflow_empty.npy", npy(dict_text(shape="(0, 9223372036854775807, 4)")))
put("npy", "bad_shape_wraps_to_8.npy", npy(dict_text(shape="(4611686018427387906,)"), eight))
put("npy", "bad_shape_too_many_digits.npy", npy(dict_text(shape="(99999999999999999999,)"), eight))
put("npy", "bad_shape_negative.npy", npy(dict_text(shape="(-2,)"), eight))
put("npy", "bad_shape_number.npy", npy(dict_text(shape="(2)"), eight))
put("npy", "bad_shape_list.npy", npy(dict_text(shape="[2]"), eight))
put("npy", "bad_shape_nine_dims.npy", npy(dict_text(shape="(1, 1, 1, 1, 1, 1, 1, 1, 2)"), eight))
put("npy", "bad_shape_unclosed.npy", npy("{'descr': '<f4', 'fortran_order': False, 'shape': (2,", eight))
put("npy", "bad_shape_no_comma.npy", npy(dict_text(shape="(1 2)"), eight))
put("npy", "bad_key_twice.npy", npy(dict_text(extra="'shape': (2,), "), eight))
put("npy", "bad_key_unknown.npy", npy(dict_text(extra="'colour': 'red', "), eight))
put("npy", "bad_key_missing.npy", npy("{'descr': '<f4', 'shape': (2,)}", eight))
put("npy", "bad_no_comma.npy", npy("{'descr': '<f4' 'fortran_order': False, 'shape': (2,)}", eight))
put("npy", "bad_trailing_text.npy", npy(dict_text() + "x", eight))
put("npy", "bad_order_word.npy", npy(dict_text(order="Maybe"), eight))
put("npy", "bad_descr_unquoted.npy", npy(dict_text("<f4"), eight))
put("npy", "bad_descr_long.npy", npy(dict_text("'" + "<f4" * 40 + "'"), eight))
put("npy", "bad_descr_unclosed.npy", npy("{'descr': '<f4", eight))
put("npy", "bad_descr_no_order.npy", npy(dict_text("'|f4'"), eight))
put("npy", "bad_descr_object.npy", npy(dict_text("'|O'"), eight))


# safetensors
def entry(dtype="F32", shape=(2,), offsets=(0, 8)):
    return {"dtype": dtype, "shape": list(shape), "data_offsets": list(offsets)}


def tensors(header, data=b"", length=None):
    text = header if isinstance(header, bytes) else header.encode() if isinstance(header, str) else json.dumps(header).encode()
    return struct.pack("<Q", len(text) if length is None else length) + text + data


sizes = {"F32": 4, "F16": 2, "BF16": 2, "F64": 8, "I32": 4, "I64": 8, "U8": 1}
header, data, at = {"__metadata__": {"made": "by hand", "é": "ü"}}, b"", 0
for dtype in ["F64", "I64", "F32", "I32", "F16", "BF16", "U8"]:
    n = sizes[dtype] * 3
    header[dtype.lower()] = entry(dtype, (3,), (at, at + n))
    data += bytes(range(n))
    at += n
put("safetensors", "ok_all_types.safetensors", tensors(header, data))
put("safetensors", "ok_padded.safetensors", tensors(json.dumps({"a": entry()}) + "     ", eight))
put("safetensors", "ok_nothing.safetensors", tensors("{}"))
put("safetensors", "ok_empty_tensors.safetensors",
    tensors({"b": entry(shape=(0, 3), offsets=(0, 0)), "a": entry(), "c": entry(shape=(0,), offsets=(8, 8))}, eight))
put("safetensors", "ok_scalar.safetensors", tensors({"a": entry(shape=(), offsets=(0, 4))}, bytes(4)))
put("safetensors", "ok_unaligned.safetensors",
    tensors({"bytes": entry("U8", (3,), (0, 3)), "a": entry(offsets=(3, 11))}, bytes(3) + struct.pack("<ff", 1.5, -2)))
put("safetensors", "ok_header_order.safetensors",
    tensors({"second": entry(offsets=(8, 16)), "first": entry(offsets=(0, 8))}, bytes(16)))
put("safetensors", "bad_empty_file.safetensors", b"")
put("safetensors", "bad_seven_bytes.safetensors", bytes(7))
put("safetensors", "bad_length_zero.safetensors", bytes(8))
put("safetensors", "bad_length_lie.safetensors", tensors({"a": entry()}, eight, length=5000))
put("safetensors", "bad_length_huge.safetensors", tensors({"a": entry()}, eight, length=2**63))
put("safetensors", "bad_length_all_ones.safetensors", tensors({"a": entry()}, eight, length=2**64 - 1))
put("safetensors", "bad_length_short.safetensors", tensors({"a": entry()}, eight, length=20))
put("safetensors", "bad_length_long.safetensors", tensors({"a": entry()}, eight, length=len(json.dumps({"a": entry()})) + 3))
put("safetensors", "bad_begins_with_space.safetensors", tensors(" " + json.dumps({"a": entry()}), eight))
put("safetensors", "bad_list.safetensors", tensors("[1, 2]"))
put("safetensors", "bad_not_json.safetensors", tensors('{"a": {'))
put("safetensors", "bad_two_values.safetensors", tensors("{}{}"))
put("safetensors", "bad_deep.safetensors", tensors('{"a":' + "[" * 300))
put("safetensors", "bad_deep_closed.safetensors", tensors('{"a":' + "[" * 100 + "]" * 100 + "}"))
put("safetensors", "bad_duplicate.safetensors",
    tensors('{"a":%s,"a":%s}' % (json.dumps(entry()), json.dumps(entry(offsets=(8, 16)))), bytes(16)))
put("safetensors", "bad_duplicate_key.safetensors",
    tensors('{"a":{"dtype":"F32","dtype":"F32","shape":[2],"data_offsets":[0,8]}}', eight))
put("safetensors", "bad_not_utf8.safetensors", tensors(b'{"\xff\xfe":' + json.dumps(entry()).encode() + b"}", eight))
put("safetensors", "bad_nul_name.safetensors", tensors('{"a\\u0000b":%s}' % json.dumps(entry()), eight))
put("safetensors", "bad_surrogate.safetensors", tensors('{"\\ud800":%s}' % json.dumps(entry()), eight))
put("safetensors", "bad_overlap.safetensors", tensors({"a": entry(), "b": entry(offsets=(4, 12))}, bytes(12)))
put("safetensors", "bad_same_place.safetensors", tensors({"a": entry(), "b": entry()}, eight))
put("safetensors", "bad_hole.safetensors", tensors({"a": entry(), "b": entry(offsets=(12, 20))}, bytes(20)))
put("safetensors", "bad_hole_first.safetensors", tensors({"a": entry(offsets=(4, 12))}, bytes(12)))
put("safetensors", "bad_trailing_data.safetensors", tensors({"a": entry()}, bytes(9)))
put("safetensors", "bad_beyond_file.safetensors", tensors({"a": entry()}, bytes(7)))
put("safetensors", "bad_offsets_backwards.safetensors", tensors({"a": entry(offsets=(8, 0))}, eight))
put("safetensors", "bad_offsets_negative.safetensors", tensors({"a": entry(offsets=(-8, 0))}, eight))
put("safetensors", "bad_offsets_one.safetensors", tensors({"a": entry(offsets=(8,))}, eight))
put("safetensors", "bad_offsets_real.safetensors", tensors('{"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8.0]}}', eight))
put("safetensors", "bad_offsets_huge.safetensors", tensors({"a": entry(offsets=(0, 2**63 - 1))}, eight))
put("safetensors", "bad_offsets_bigger_than_64_bits.safetensors", tensors({"a": entry(offsets=(0, 2**64 + 8))}, eight))
put("safetensors", "bad_shape_mismatch.safetensors", tensors({"a": entry(shape=(3,))}, eight))
put("safetensors", "bad_shape_negative.safetensors", tensors({"a": entry(shape=(-1, -2))}, eight))
put("safetensors", "bad_shape_overflow.safetensors", tensors({"a": entry(shape=(2**62, 2**62))}, eight))
put("safetensors", "bad_shape_wraps.safetensors", tensors({"a": entry(shape=(2**62 + 2,))}, eight))
put("safetensors", "bad_shape_nine.safetensors", tensors({"a": entry(shape=(1,) * 8 + (2,))}, eight))
put("safetensors", "bad_shape_string.safetensors", tensors('{"a":{"dtype":"F32","shape":"2","data_offsets":[0,8]}}', eight))
put("safetensors", "bad_shape_nested.safetensors", tensors('{"a":{"dtype":"F32","shape":[[2]],"data_offsets":[0,8]}}', eight))
put("safetensors", "bad_dtype_unknown.safetensors", tensors({"a": entry("F8_E4M3")}, eight))
put("safetensors", "bad_dtype_number.safetensors", tensors({"a": entry(32)}, eight))
put("safetensors", "bad_no_dtype.safetensors", tensors('{"a":{"shape":[2],"data_offsets":[0,8]}}', eight))
put("safetensors", "bad_no_shape.safetensors", tensors('{"a":{"dtype":"F32","data_offsets":[0,8]}}', eight))
put("safetensors", "bad_no_offsets.safetensors", tensors('{"a":{"dtype":"F32","shape":[2]}}', eight))
put("safetensors", "bad_unknown_key.safetensors", tensors({"a": dict(entry(), strides=1)}, eight))
put("safetensors", "bad_entry_string.safetensors", tensors('{"a":"F32"}'))
put("safetensors", "bad_metadata_number.safetensors", tensors({"__metadata__": {"a": 1}}))
put("safetensors", "bad_metadata_list.safetensors", tensors({"__metadata__": []}))

# YAML
put("yaml", "ok_recipe.yaml", """data:   {dataset: cub, root: data/CUB_200_2011}
objective:
  loss: {name: binomial, alpha: 2, beta: 50, gamma: 0.5}
  regularizers:
    - {name: energy_confusion, weight: 0.13, form: log}   # a comment
optim:  {name: adam, lr: 1e-5, multipliers: {embedding: 10}}
eval:   {every: 500, k: [1, 2, 4, 8]}
""")
put("yaml", "ok_empty.yaml", "")
put("yaml", "ok_comment.yaml", "# nothing here\n")
put("yaml", "ok_scalar.yaml", "just text\n")
put("yaml", "ok_nulls.yaml", "a: ~\nb: null\nc:\nd: 'null'\ne: \"\"\n")
put("yaml", "ok_block_text.yaml", "text: |\n  one\n  two\nfolded: >\n  three\n  four\n")
put("yaml", "ok_document_marks.yaml", "---\na: 1\n...\n")
put("yaml", "ok_bom.yaml", b"\xef\xbb\xbfa: 1\n")
put("yaml", "ok_utf8.yaml", "größe: 3\n")
put("yaml", "ok_depth_64.yaml", "[" * 64 + "]" * 64)
put("yaml", "bad_depth_65.yaml", "[" * 65 + "]" * 65)
put("yaml", "bad_depth_maps.yaml", "{a: " * 70 + "1" + "}" * 70)
put("yaml", "bad_depth_block.yaml", "".join(" " * i + "a:\n" for i in range(70)))
put("yaml", "bad_duplicate.yaml", "a: 1\nb: 2\na: 3\n")
put("yaml", "bad_duplicate_flow.yaml", "x: {a: 1, 'a': 2}\n")
put("yaml", "bad_laughs.yaml",
    "a: &a [x, x]\nb: &b [*a, *a]\nc: &c [*b, *b]\nd: [*c, *c]\n")
put("yaml", "bad_alias.yaml", "a: *b\n")
put("yaml", "bad_anchor.yaml", "a: &b 1\n")
put("yaml", "bad_anchor_loop.yaml", "&a [*a]\n")
put("yaml", "bad_tag.yaml", "a: !!python/object:os.system x\n")
put("yaml", "bad_tab.yaml", "a:\n\tb: 1\n")
put("yaml", "bad_indent.yaml", "a: 1\n  b: 2\n")
put("yaml", "bad_unclosed.yaml", "a: [1, 2\n")
put("yaml", "bad_unclosed_quote.yaml", "a: 'text\n")
put("yaml", "bad_two_documents.yaml", "---\na: 1\n---\nb: 2\n")
put("yaml", "bad_key_list.yaml", "? [a, b]\n: 1\n")
put("yaml", "bad_key_empty.yaml", ": 1\n")
put("yaml", "bad_nul.yaml", 'a: "x\\0y"\n')
put("yaml", "bad_nul_raw.yaml", b"a: x\0y\n")
put("yaml", "bad_not_utf8.yaml", b"a: \xff\xfe\n")
put("yaml", "bad_overlong_utf8.yaml", b"a: \xc0\xaf\n")
put("yaml", "bad_control.yaml", b"a: \x07\n")
put("yaml", "bad_utf16.yaml", "a: 1\n".encode("utf-16"))


# .mat: lists of images. ok_matio_* and bad_matio_* are libmatio 1.5.23's (the bad one says lengths that it does not
# write); bad_flipped_* are ok_matio_plain.mat with one bit changed that made libmatio read where nothing is.
def element(type_, data, order="<"):
    if 0 < len(data) <= 4:
        return struct.pack(order + "I", len(data) << 16 | type_) + data.ljust(4, b"\0")
    return struct.pack(order + "II", type_, len(data)) + data + bytes(-len(data) % 8)


def matrix(class_, dims, name, body, order="<", flags=0, length=None):
    data = element(6, struct.pack(order + "II", class_ | flags, 0), order)
    data += element(5, struct.pack(f"{order}{len(dims)}i", *dims), order) + element(1, name.encode(), order) + body
    return struct.pack(order + "II", 14, len(data) if length is None else length) + data


def number(value, order="<"):
    return matrix(6, (1, 1), "", element(9, struct.pack(order + "d", value), order), order)


def word(text, order="<"):
    return matrix(4, (1, len(text)), "", element(4, struct.pack(f"{order}{len(text)}H", *map(ord, text)), order), order)


def fields(names, order="<", length=16):
    return element(5, struct.pack(order + "i", length), order) + element(
        1, b"".join(n.encode().ljust(length, b"\0") for n in names), order)


def cars(order="<", dims=(1, 2), **how):
    one = word("a.jpg", order) + number(3, order) + b"".join(number(v, order) for v in (1, 1, 9, 9))
    two = word("b.jpg", order) + number(99, order) + b"".join(number(v, order) for v in (1, 1, 9, 9))
    names = ["fname", "class", "bbox_x1", "bbox_y1", "bbox_x2", "bbox_y2"]
    return matrix(2, dims, "annotations", fields(names, order) + one + two, order, **how)


def packed(variable, order="<", data=None):
    data = zlib.compress(variable) if data is None else data
    return struct.pack(order + "II", 15, len(data)) + data


def mat(*variables, order="<", version=0x0100):
    return b"MATLAB 5.0 MAT-file".ljust(124) + struct.pack(order + "HH", version, 0x4D49) + b"".join(variables)


names = matrix(1, (1, 2), "class_names", word("Audi") + word("Škoda"))
put("mat", "ok_both.mat", mat(cars(), names))
put("mat", "ok_big_endian.mat", mat(cars(">"), order=">"))
put("mat", "ok_packed.mat", mat(packed(cars()), packed(names)))
put("mat", "ok_other_variables.mat", mat(matrix(5, (3, 3), "sparse", b""), matrix(9, (1, 1), "x", element(2, b"7")), cars()))
put("mat", "ok_empty_list.mat", mat(matrix(2, (0, 0), "annotations", fields(["fname"]))))
put("mat", "ok_names_not_text.mat", mat(matrix(1, (1, 2), "class_names", number(1) + matrix(1, (0, 0), "", b"")), cars()))
put("mat", "bad_empty_file.mat", b"")
put("mat", "bad_header_only.mat", mat())
put("mat", "bad_version.mat", mat(cars(), version=0x0300))
put("mat", "bad_hdf5.mat", mat().ljust(512, b"\0") + b"\x89HDF\r\n\x1a\n" + bytes(8))
put("mat", "bad_no_struct.mat", mat(matrix(1, (1, 0), "annotations", b"")))
put("mat", "bad_cut.mat", mat(cars())[:-20])
put("mat", "bad_tag_cut.mat", mat(cars())[:132])
put("mat", "bad_extent_negative.mat", mat(cars(dims=(1, -2))))
put("mat", "bad_extents_huge.mat", mat(cars(dims=(2**31 - 1, 2**31 - 1, 2**31 - 1))))
put("mat", "bad_extents_more_than_bytes.mat", mat(cars(dims=(1, 2**20))))
put("mat", "bad_no_extents.mat", mat(cars(dims=())))
put("mat", "bad_fields_length_zero.mat", mat(matrix(2, (1, 1), "annotations", element(5, bytes(4)) + element(1, bytes(64)))))
put("mat", "bad_no_fields.mat", mat(matrix(2, (1, 2**31 - 1), "annotations", element(5, struct.pack("<i", 16)) + element(1, b""))))
put("mat", "bad_part_no_matrix.mat", mat(matrix(2, (1, 1), "annotations", fields(["fname"]) + element(9, bytes(8)))))
put("mat", "bad_short_element.mat", mat(struct.pack("<II", 5 << 16 | 14, 0)))
put("mat", "bad_packed_promise.mat", mat(packed(struct.pack("<II", 14, 2**31 - 1) + bytes(100))))
put("mat", "bad_packed_cut.mat", mat(packed(b"", data=zlib.compress(cars())[:-30])))
put("mat", "bad_packed_damaged.mat", mat(packed(b"", data=b"\x78\x9c" + bytes(range(60)))))
put("mat", "bad_packed_nothing.mat", mat(packed(b"", data=zlib.compress(b""))))
put("mat", "bad_packed_short.mat", mat(packed(cars(length=5000))))
put("mat", "bad_one_too_many.mat", mat(packed(cars(dims=(1, 3)))))


# .gz: idx files, behind a byte that says which (0: images, 1: labels)
def idx(dims, data):
    return struct.pack(f">{1 + len(dims)}I", 0x800 + len(dims), *dims) + data


def gz(data, kind=b"\0"):
    packer = zlib.compressobj(9, zlib.DEFLATED, 31)
    return kind + packer.compress(data) + packer.flush()


images = idx((2, 3, 2), bytes(range(12)))
put("gzip", "ok_images.gz", gz(images))
put("gzip", "ok_labels.gz", gz(idx((3,), b"\1\2\3"), b"\1"))
put("gzip", "ok_two_members.gz", gz(images[:15]) + gz(images[15:], b""))
put("gzip", "ok_trailing_zeros.gz", gz(images) + bytes(20))
put("gzip", "bad_empty.gz", b"\0")
put("gzip", "bad_not_packed.gz", b"\0" + images)
put("gzip", "bad_header_cut.gz", gz(images[:10]))
put("gzip", "bad_magic.gz", gz(b"\1" + images[1:]))
put("gzip", "bad_more.gz", gz(images + bytes(100000)))
put("gzip", "bad_fewer.gz", gz(images[:-1]))
put("gzip", "bad_promise_impossible.gz", gz(idx((60000, 28, 28), b"")))
put("gzip", "bad_promise_huge.gz", gz(idx((2**32 - 1, 2**32 - 1, 2**32 - 1), b"")))
put("gzip", "bad_cut.gz", gz(images)[:-12])
put("gzip", "bad_checksum.gz", gz(images)[:-8] + bytes(8))


# tar files: names and sizes in every form
def tar_header(name, kind=b"0", size=0, size_text=None, prefix=b""):
    h = bytearray(512)
    h[0:len(name)] = name
    h[124:136] = size_text if size_text is not None else b"%011o\0" % size
    h[148:156] = b" " * 8
    h[156:157] = kind
    h[257:265] = b"ustar\00000"
    h[345:345 + len(prefix)] = prefix
    h[148:156] = b"%06o\0 " % sum(h)
    return bytes(h)


def tar_member(name, data, kind=b"0", **more):
    return tar_header(name, kind, len(data), **more) + data + bytes(-len(data) % 512)


tar_end = bytes(1024)
put("tar", "ok_plain.tar", tar_member(b"a.jpg", b"one") + tar_member(b"a.cls", b"1") + tar_end)
put("tar", "ok_prefix.tar", tar_member(b"a.jpg", b"one", prefix=b"long/folder") + tar_end)
put("tar", "ok_gnu_long.tar", tar_member(b"././@LongLink", b"n" * 200 + b"\0", b"L") + tar_member(b"nnn", b"one") + tar_end)
put("tar", "ok_pax.tar", tar_member(b"PaxHeaders/a", b"12 path=a/b\n9 size=3\n", b"x") + tar_member(b"a", b"one") + tar_end)
put("tar", "ok_base256.tar", tar_header(b"a", size_text=b"\x80" + bytes(10) + b"\3") + b"one" + bytes(509) + tar_end)
put("tar", "ok_links.tar", tar_header(b"l", b"2", 99) + tar_header(b"d/", b"5") + tar_end)
put("tar", "bad_negative.tar", tar_header(b"a", size_text=b"\xff" * 12) + tar_end)
put("tar", "bad_huge.tar", tar_header(b"a", size_text=b"\x80\0\0\0\x7f" + b"\xff" * 7) + tar_end)
put("tar", "bad_cut.tar", tar_member(b"a.jpg", b"one" * 400)[:900])
put("tar", "bad_no_end.tar", tar_member(b"a.jpg", b"one"))
put("tar", "bad_checksum.tar", b"b" + tar_member(b"a.jpg", b"one")[1:] + tar_end)
put("tar", "bad_pax_record.tar", tar_member(b"PaxHeaders/a", b"99 path=a\n", b"x") + tar_member(b"a", b"one") + tar_end)
