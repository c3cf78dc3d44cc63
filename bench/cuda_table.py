"""The lines of bench/cuda_train.sh as a table: images per second, ratios to PyTorch, memory.

    python3 bench/cuda_table.py OUT/train.jsonl"""
import json
import sys


def main():
    best, errors = {}, []
    for text in open(sys.argv[1]):
        row = json.loads(text)
        key = row["backbone"], row["precision"]
        if "error" in row:
            errors.append("%s %s %s: %s" % (row.get("who", ""), *key, row["error"]))
            continue
        best.setdefault(key, {})[row["who"]] = row

    def speed(rows, who):
        return rows[who]["images_per_second"] if who in rows else 0.0

    def ratio(a, b):
        return "%8.2f" % (a / b) if a and b else "       -"

    def mib(rows, who, key):
        return "%8.0f" % (rows[who][key] / 2**20) if who in rows else "       -"

    print("%-13s %-8s %9s %9s %9s %9s %8s %8s %8s %8s %8s %8s" % (
        "net", "type", "kith", "again", "eager", "compiled", "x eager", "x compil", "step ms", "MiB", "eager", "compil"))
    for key in sorted(best, key=lambda k: (k[1], k[0])):
        rows = best[key]
        a, b = speed(rows, "kith"), speed(rows, "kith-again")
        eager, compiled = (max(speed(rows, who), speed(rows, who + "_nchw")) for who in ("torch-eager", "torch-compiled"))
        least = min(x for x in (a, b) if x) if a or b else 0.0
        print("%-13s %-8s %9.0f %9.0f %9.0f %9.0f %s %s %8.3f %s %s %s" % (
            *key, a, b, eager, compiled, ratio(least, eager), ratio(least, compiled),
            1000 * rows["kith"]["step_seconds"] if "kith" in rows else 0, mib(rows, "kith", "device_bytes"),
            mib(rows, "torch-eager", "reserved_bytes"), mib(rows, "torch-compiled", "reserved_bytes")))
    print("ratios take the slower of kith's two runs and the better of PyTorch's layouts; memory: taken from the device, "
          "reserved by PyTorch in channels_last")
    for line in errors:
        print("error:", line)


main()
