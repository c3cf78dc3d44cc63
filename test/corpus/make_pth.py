#!/usr/bin/env python3
"""Write test/corpus/pth: state dicts that torch.save writes, and files that must be refused.

The tensors of the ok_ files are those of convnet4 with 4 channels on grey images and a classifier of 3: tensor i of a
file, in its order, holds i + 0.25, i + 0.5 … The hostile files would run a command (touch a file) or a function if they
were unpickled. Run: python3 make_pth.py   (PyTorch 1.13; the files depend on its version in their zip heads alone)"""
import collections
import io
import os
import pickle
import struct
import zipfile

import torch

HERE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "pth")
WIDTH = 4


def values(i, shape, dtype=torch.float32):
    n = 1
    for d in shape:
        n *= d
    return (i + 0.25 * torch.arange(1, n + 1, dtype=torch.float64)).to(dtype).reshape(shape)


def convnet4(classifier="fc", dtype=torch.float32, prefix=""):
    shapes = []
    for i in range(1, 5):
        shapes.append(("conv%d.weight" % i, [WIDTH, 1 if i == 1 else WIDTH, 3, 3]))
        shapes += [("bn%d.%s" % (i, name), [WIDTH]) for name in ("weight", "bias", "running_mean", "running_var")]
        shapes.append(("bn%d.num_batches_tracked" % i, []))
    shapes += [(classifier + ".weight", [3, WIDTH]), (classifier + ".bias", [3])]
    out = collections.OrderedDict()
    for i, (name, shape) in enumerate(shapes):
        out[prefix + name] = torch.tensor(7) if name.endswith("tracked") else values(i, shape, dtype)
    out._metadata = collections.OrderedDict([("", {"version": 1})])
    return out


def save(name, what, **how):
    torch.save(what, os.path.join(HERE, name), **how)


def rewrite(source, name, change, method=zipfile.ZIP_STORED):
    """A copy of an archive whose entries went through change(entry name, bytes)."""
    with zipfile.ZipFile(os.path.join(HERE, source)) as old, zipfile.ZipFile(os.path.join(HERE, name), "w", method) as new:
        for entry in old.namelist():
            data = change(entry, old.read(entry))
            if data is not None:
                new.writestr(entry, data)


class Runs:
    """Unpickling one of these calls a function."""

    def __init__(self, function, *arguments):
        self.what = (function, arguments)

    def __reduce__(self):
        return self.what


def hostile(name, pickled):
    rewrite("ok_state_dict.pth", name, lambda entry, data: pickled if entry.endswith("data.pkl") else data)


def main():
    os.makedirs(HERE, exist_ok=True)
    save("ok_state_dict.pth", convnet4())
    save("ok_module_cadene.pth", convnet4("last_linear", prefix="module."))
    save("ok_checkpoint.pth", {"epoch": 3, "lr": 0.1, "best": True, "none": None, "state_dict": convnet4()})
    save("ok_half.pth", convnet4(dtype=torch.float16))
    parameters = collections.OrderedDict((k, torch.nn.Parameter(v, requires_grad=v.is_floating_point()))
                                         for k, v in convnet4().items())
    save("ok_parameters.pth", parameters)
    base = torch.arange(40, dtype=torch.float32)
    save("ok_shared_storage.pth", collections.OrderedDict([("a", base[:12].view(3, 4)), ("b", base[12:])]))

    whole = open(os.path.join(HERE, "ok_state_dict.pth"), "rb").read()
    out = lambda name, data: open(os.path.join(HERE, name), "wb").write(data)
    out("bad_empty.pth", b"")
    out("bad_cut.pth", whole[:len(whole) // 2])
    out("bad_no_directory.pth", whole[:-30])
    out("bad_directory_outside.pth", whole[:-6] + struct.pack("<I", 0x7fffffff) + whole[-2:])
    save("bad_legacy.pth", convnet4(), _use_new_zipfile_serialization=False)
    save("bad_whole_model.pth", torch.nn.Linear(2, 3))
    save("bad_list.pth", [torch.zeros(3)])
    save("bad_transposed.pth", collections.OrderedDict([("a", torch.zeros(3, 4).t())]))
    save("bad_protocol_4.pth", convnet4(), pickle_protocol=4)
    save("bad_int8.pth", collections.OrderedDict([("a", torch.zeros(3, dtype=torch.int8))]))
    save("bad_no_tensors.pth", {"epoch": 3})
    rewrite("ok_state_dict.pth", "bad_packed.pth", lambda entry, data: data, zipfile.ZIP_DEFLATED)
    rewrite("ok_state_dict.pth", "bad_no_pickle.pth", lambda entry, data: None if entry.endswith(".pkl") else data)
    rewrite("ok_state_dict.pth", "bad_no_storage.pth", lambda entry, data: None if entry.endswith("data/0") else data)
    rewrite("ok_state_dict.pth", "bad_short_storage.pth", lambda entry, data: data[:-4] if entry.endswith("data/0") else data)
    rewrite("ok_state_dict.pth", "bad_big_endian.pth", lambda entry, data: data)
    with zipfile.ZipFile(os.path.join(HERE, "bad_big_endian.pth"), "a") as archive:
        archive.writestr("ok_state_dict/byteorder", b"big")
    dump = lambda what: pickle.dumps(what, protocol=2)
    hostile("bad_system.pth", dump({"a": Runs(os.system, "touch kith-was-here")}))
    hostile("bad_eval.pth", dump({"a": Runs(eval, "open('kith-was-here', 'w')")}))
    hostile("bad_import.pth", b"\x80\x02}q\x00X\x01\x00\x00\x00acimportlib\nimport_module\nX\x02\x00\x00\x00os\x85Rs.")
    hostile("bad_getattr.pth", b"\x80\x02}q\x00X\x01\x00\x00\x00ac__builtin__\ngetattr\nN\x85Rs.")
    hostile("bad_inst.pth", b"\x80\x02(S'touch kith-was-here'\nios\nsystem\n.")
    hostile("bad_stack_global.pth", b"\x80\x04\x8c\x02os\x8c\x06system\x93\x8c\x02id\x85R.")
    hostile("bad_reduce_no_function.pth", b"\x80\x02}K\x01)R.")
    hostile("bad_memo.pth", b"\x80\x02}r\xff\xff\xff\x7f.")
    hostile("bad_memo_get.pth", b"\x80\x02h\x05.")
    hostile("bad_stack.pth", b"\x80\x02s.")
    hostile("bad_mark.pth", b"\x80\x02}u.")
    hostile("bad_unended.pth", b"\x80\x02}")
    hostile("bad_text_long.pth", b"\x80\x02X\xff\xff\xff\x7fab.")
    hostile("bad_dict_in_itself.pth", b"\x80\x02}q\x00X\x01\x00\x00\x00ah\x00s.")
    twice = lambda k: b"}q" + bytes([k]) + b"(X\x01\x00\x00\x00ah" + bytes([k - 1]) + b"X\x01\x00\x00\x00bh" + bytes([k - 1]) + b"X\x01\x00\x00\x00ch" + bytes([k - 1]) + b"X\x01\x00\x00\x00dh" + bytes([k - 1]) + b"u"
    hostile("bad_many_paths.pth", b"\x80\x02}X\x01\x00\x00\x00z}q\x00s" + b"".join(b"X\x01\x00\x00\x00" + bytes([96 + k]) + twice(k) + b"s" for k in range(1, 14)) + b".")
    storage = b"(X\x07\x00\x00\x00storagectorch\nFloatStorage\nX\x01\x00\x00\x000X\x03\x00\x00\x00cpuK\x24tQ"
    tensor = lambda size: b"\x80\x02}X\x01\x00\x00\x00actorch._utils\n_rebuild_tensor_v2\n(" + storage + size + b"\x89NtRs."
    hostile("bad_larger_than_storage.pth", tensor(b"K\x00K\xff\x85K\x01\x85"))
    hostile("bad_negative_size.pth", tensor(b"K\x00J\xff\xff\xff\xff\x85K\x01\x85"))
    hostile("bad_offset.pth", tensor(b"K\x30K\x01\x85K\x01\x85"))
    hostile("bad_huge_size.pth", tensor(b"K\x00\x8a\x08\xff\xff\xff\xff\xff\xff\xff\x7f\x8a\x08\xff\xff\xff\xff\xff\xff\xff\x7f\x86K\x01K\x01\x86"))
    print("%d files" % len(os.listdir(HERE)))


main()
