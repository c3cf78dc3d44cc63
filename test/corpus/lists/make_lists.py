#!/usr/bin/python3
"""Makes the seeds of fuzz_lists in this folder: the first byte names the parser (c CUB, s SOP, i In-Shop, m CSV
manifest, x idx), files of one data set are cut by 0x1e. ok_ must be read, bad_ must be refused."""
import os
import struct

HERE = os.path.dirname(os.path.abspath(__file__))


def put(name, data):
    with open(os.path.join(HERE, name), "wb") as f:
        f.write(data if isinstance(data, bytes) else data.encode())


def cub(*files):
    return b"c" + b"\x1e".join(f if isinstance(f, bytes) else f.encode() for f in files)


put("ok_cub", cub("1 001.A/a.jpg\n2 101.B/b c.jpg\n", "1 1\n2 101\n", "1 60.0 27.0 325.0 304.0\n", "1 001.A\n101 101.B\n"))
put("ok_cub_crlf_bom", cub(b"\xef\xbb\xbf1 a.jpg\r\n\r\n2 b.jpg", b"2 5\r\n1 7\r\n", b"", b""))
put("ok_cub_non_ascii", cub("1 Ünï/ç.jpg\n", "1 1\n", "", ""))
put("ok_cub_empty", cub("", "", "", ""))
put("bad_cub_no_label", cub("1 a.jpg\n2 b.jpg\n", "1 1\n", "", ""))
put("bad_cub_twice", cub("1 a.jpg\n1 b.jpg\n", "1 1\n", "", ""))
put("bad_cub_no_path", cub("1\n", "1 1\n", "", ""))
put("bad_cub_class_0", cub("1 a.jpg\n", "1 0\n", "", ""))
put("bad_cub_box", cub("1 a.jpg\n", "1 1\n", "1 2 3 4\n", ""))
put("bad_cub_number", cub("99999999999999999999 a.jpg\n", "1 1\n", "", ""))
put("bad_cub_nul", cub(b"1 a\0b.jpg\n", b"1 1\n", b"", b""))
put("ok_sop", "simage_id class_id super_class_id path\n1 1 1 a/b.JPG\n2 1 1 a/c d.JPG\n")
put("ok_sop_no_header", "s1 1 1 a/b.JPG\r\n")
put("bad_sop_short", "simage_id class_id super_class_id path\n1 1 1\n")
put("bad_sop_text", "s1 one 1 a.jpg\n")
put("ok_inshop", "i2\nimage_name item_id evaluation_status\nimg/a.jpg   id_1  train\nimg/b.jpg id_2 query\n")
put("ok_inshop_no_head", "iimg/a.jpg id_1 gallery\n")
put("bad_inshop_count", "i3\nimage_name item_id evaluation_status\nimg/a.jpg id_1 train\n")
put("bad_inshop_word", "i1\nimage_name item_id evaluation_status\nimg/a.jpg id_1 trian\n")
put("bad_inshop_short", "i1\nimage_name item_id evaluation_status\nimg/a.jpg\n")
put("ok_csv", "mpath,label\na.jpg,x\n\"b, c.jpg\",\"say \"\"y\"\"\"\n")
put("ok_csv_all", "mlabel,path,split,role,x,y,w,h\r\nz,a.jpg,train,,1,2,3,4\r\nz,b.jpg,test,query,,,,\r\n")
put("ok_csv_quoted_line", "mpath,note,label\na.jpg,\"two\nlines\",b\n")
put("bad_csv_label_line", "mpath,label\na.jpg,\"two\nlines\"\n")
put("bad_csv_twice", "mpath,label,label\na.jpg,a,b\n")
put("bad_csv_empty", "m")
put("bad_csv_header", "mfile,class\na,b\n")
put("bad_csv_quote", "mpath,label\n\"a.jpg,x\n")
put("bad_csv_after_quote", "mpath,label\n\"a.jpg\"z,x\n")
put("bad_csv_split", "mpath,label,split\na.jpg,x,trial\n")
put("bad_csv_half_box", "mpath,label,x,y\na.jpg,x,1,2\n")
put("bad_csv_box_nan", "mpath,label,x,y,w,h\na.jpg,x,1,2,nan,4\n")
put("bad_csv_wide", "m" + ",".join(["path", "label"] + ["z"] * 70) + "\n")
put("bad_csv_long_path", "mpath,label\n" + "a" * 5000 + ",x\n")


def idx(images, labels):
    return b"x" + struct.pack("<H", len(images)) + images + labels


pixels = struct.pack(">IIII", 0x803, 2, 3, 2) + bytes(range(12))
labels = struct.pack(">II", 0x801, 2) + b"\x07\x00"
put("ok_idx", idx(pixels, labels))
put("ok_idx_none", idx(struct.pack(">IIII", 0x803, 0, 3, 2), struct.pack(">II", 0x801, 0)))
put("bad_idx_magic", idx(b"\0\0\x0d\x03" + pixels[4:], labels))
put("bad_idx_cut", idx(pixels[:-1], labels))
put("bad_idx_count", idx(pixels, struct.pack(">II", 0x801, 3) + b"\0\0\0"))
put("bad_idx_overflow", idx(struct.pack(">IIII", 0x803, 2 ** 32 - 1, 2 ** 32 - 1, 2 ** 32 - 1) + bytes(4), labels))
put("bad_idx_zero_side", idx(struct.pack(">IIII", 0x803, 2, 0, 0), labels))
put("bad_idx_short", idx(b"\0\0\x08", labels))
