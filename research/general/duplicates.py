#!/usr/bin/env python3
"""Takes out of the training sets every picture that is also among the judged ones.

    duplicates.py KITH OUT CUB SET...

OUT is what layout.py wrote and CUB the folder of CUB-200-2011. The judged pictures are the rows of OUT/*.csv with split test, and CUB's
classes 101 to 200. `kith data --duplicates` finds the same picture: copied, resized, saved again, mirrored, or cut by up to a tenth of a
side. It compares all pictures with all others up to 65,536 of them, so the training pictures come in parts. Rows that are found leave
OUT/SET.csv (their files stay) and go to the end of OUT/duplicates.tsv, with the judged picture each is the same as. Running it again finds nothing.

kith's groups are chains: a picture that is like one of a group joins it, and among many thousand landscapes, bright above and dark below,
chains grow between pictures that are not the same. So a picture is removed only if its edges, too, are those of a judged picture
of its group (EDGES, in 32 x 32 pixels, mirrored or not, whole or cut by a tenth). Needs python3-pil and python3-numpy."""
import csv, json, os, subprocess, sys

import numpy
from PIL import Image

MOST = 65536
EDGES = 0.8  # correlation: of 905 pictures in groups with judged ones, 9 copies had 0.92 or more and the others 0.71 or less


def read(path):
    with open(path, newline='', encoding='utf-8') as file:
        return list(csv.DictReader(file))


def write(path, rows):
    with open(path + '.part', 'w', newline='', encoding='utf-8') as file:
        writer = csv.writer(file, lineterminator='\n')
        writer.writerow(('path', 'label', 'split'))
        writer.writerows((row['path'], row['label'], row['split']) for row in rows)
    os.replace(path + '.part', path)


def judged(out, cub, rows):
    found = [os.path.join(out, row['path']) for row in rows if row['split'] == 'test']
    with open(os.path.join(cub, 'images.txt'), encoding='utf-8') as file:
        for line in file:
            path = line.split()[1]
            if int(path[:3]) > 100:
                found.append(os.path.join(cub, 'images', path))
    return [os.path.abspath(path) for path in found]


def edges(picture):
    """Its differences to the right and downwards, as a vector of length 1."""
    small = numpy.asarray(picture.resize((32, 32), Image.BOX), dtype=numpy.float32)
    vector = numpy.concatenate([numpy.diff(small, axis=1).ravel(), numpy.diff(small, axis=0).ravel()])
    return vector / (numpy.linalg.norm(vector) + 1e-9)


def cuts(picture):
    """The whole, and parts of it without a tenth or a twentieth of a side."""
    w, h = picture.size
    yield edges(picture)
    for cut in (0.05, 0.1):
        for x in (0, cut / 2, cut):
            for y in (0, cut / 2, cut):
                yield edges(picture.crop((round(w * x), round(h * y), round(w * (x + 1 - cut)), round(h * (y + 1 - cut)))))
        yield edges(picture.crop((round(w * cut / 2), 0, round(w * (1 - cut / 2)), h)))
        yield edges(picture.crop((0, round(h * cut / 2), w, round(h * (1 - cut / 2)))))


def likeness(a, b):
    a, b = (Image.open(path).convert('L') for path in (a, b))
    mirrored = a.transpose(Image.FLIP_LEFT_RIGHT)
    whole = edges(b)
    best = max(float(cut @ whole) for picture in (a, mirrored) for cut in cuts(picture))
    parts = numpy.stack(list(cuts(b)))
    return max(best, float((parts @ edges(a)).max()), float((parts @ edges(mirrored)).max()))


def same(kith, out, test, train):
    """{training picture: judged picture} of those that are the same."""
    manifest = os.path.join(out, 'all.part.csv')
    write(manifest, [{'path': p, 'label': 'judged', 'split': 'test'} for p in test] +
          [{'path': p, 'label': 'train', 'split': 'train'} for p in train])
    run = subprocess.run([kith, 'data', manifest, '--duplicates', '--json'], capture_output=True, text=True)
    os.remove(manifest)
    if run.returncode:
        sys.exit('kith data --duplicates: ' + run.stderr.strip())
    found = {}
    for group in json.loads(run.stdout)['groups']:
        first = [p['path'] for p in group['pictures'] if p['split'] == 'test']
        for picture in (p['path'] for p in group['pictures'] if p['split'] == 'train' and first):
            alike = max(first, key=lambda path: likeness(picture, path))
            if likeness(picture, alike) >= EDGES:
                found[picture] = alike
    return found


def main(argv):
    if len(argv) < 4:
        sys.exit(__doc__)
    kith, out, cub, sets = argv[0], argv[1], argv[2], argv[3:]
    rows = {name: read(os.path.join(out, name + '.csv')) for name in sets}
    test = judged(out, cub, [row for name in sets for row in rows[name]])
    train = [os.path.abspath(os.path.join(out, row['path'])) for name in sets for row in rows[name] if row['split'] == 'train']
    step = MOST - len(test)
    if step < 1:
        sys.exit('%d judged pictures; fewer than %d can be compared at once' % (len(test), MOST))
    found = {}
    for i in range(0, len(train), step):
        found.update(same(kith, out, test, train[i:i + step]))
        print('%d of %d compared with %d, %d found' % (min(i + step, len(train)), len(train), len(test), len(found)), flush=True)
    with open(os.path.join(out, 'duplicates.tsv'), 'a', encoding='utf-8') as file:
        for name in sets:
            gone = {row['path']: found[os.path.abspath(os.path.join(out, row['path']))] for row in rows[name]
                    if os.path.abspath(os.path.join(out, row['path'])) in found}
            file.write(''.join('%s\t%s\n' % pair for pair in sorted(gone.items())))
            if gone:
                write(os.path.join(out, name + '.csv'), [row for row in rows[name] if row['path'] not in gone])
            print('%s: %d removed, %d left' % (name, len(gone), len(rows[name]) - len(gone)))


if __name__ == '__main__':
    main(sys.argv[1:])
