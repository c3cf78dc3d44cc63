#!/usr/bin/env python3
"""Lays out the images that the general embedding learns from and is judged by.

    layout.py SETS.tsv MIRRORS OUT [SET ...]     re-encode sets (all of them, or those named)
    layout.py --shards OUT SHARDS SET ...        pack laid-out sets into tar files under 55 MB

SETS.tsv names each set: its repository, commit, a pattern for paths and how to make it smaller. MIRRORS holds the repositories as
OWNER+NAME/repo, bare or not; images are read from the commit, never from a work tree. For each set this writes

    OUT/SET/CLASS/BLOB.jpg    the image, named by the first 16 digits of its git blob
    OUT/SET.csv               path,label,split, as kith's data set `csv` reads it
    OUT/SET.counts            what was found, kept and left out, and why

A side of 192/256 is 192 for training and 256 for judging.

The same commits, table and version of Pillow give the same bytes: images are chosen by their blob, never by chance or order. A blob is
laid out once: the sets are taken in the table's order, so what is judged comes first and wins. Needs python3-pil."""
import collections, csv, hashlib, io, os, re, subprocess, sys, tarfile
from multiprocessing import Pool

from PIL import Image

SHARD = 54_000_000  # bytes of a tar file; a carried folder may have 60 MB
COLUMNS = ['set', 'repository', 'commit', 'pattern', 'side', 'quality', 'cap', 'use']


def table(path):
    """The rows of SETS.tsv as dicts; a line that begins with # is a comment."""
    rows = []
    for number, line in enumerate(open(path, encoding='utf-8'), 1):
        if not line.strip() or line.startswith('#'):
            continue
        cells = line.rstrip('\n').split('\t')
        if len(cells) != len(COLUMNS):
            sys.exit('%s:%d: %d columns, wanted %d' % (path, number, len(cells), len(COLUMNS)))
        row = dict(zip(COLUMNS, cells))
        if row['use'] not in ('train', 'judge', 'half'):
            sys.exit('%s:%d: use is train, judge or half, not %s' % (path, number, row['use']))
        rows.append(row)
    return rows


def git_dir(mirrors, repository):
    base = os.path.join(mirrors, repository.replace('/', '+'), 'repo')
    return os.path.join(base, '.git') if os.path.isdir(os.path.join(base, '.git')) else base


def plain(name):
    """A class name that is safe in a path and in a CSV."""
    return re.sub(r'[^0-9A-Za-z]+', '_', name).strip('_') or 'none'


def listing(git, commit, pattern):
    """(blob, class) of every path that the pattern matches, in the order of paths."""
    out = subprocess.run(['git', '--git-dir=' + git, 'ls-tree', '-r', '-z', '--format=%(objectname) %(path)', commit],
                         capture_output=True, check=True).stdout
    for entry in sorted(out.split(b'\0'), key=lambda e: e[41:]):
        match = pattern.fullmatch(entry[41:].decode('utf-8', 'replace'))
        if match:
            kind = '_'.join(g for g in match.groups() if g) if match.groups() else ''
            yield entry[:40].decode(), plain(kind)


def smaller(data, side, quality):
    """The image as JPEG with the shorter side at most `side`; a small JPEG stays as it is. None when it cannot be read."""
    try:
        image = Image.open(io.BytesIO(data))
        if image.width * image.height > 100_000_000:
            return None
        scale = side / min(image.size)
        if image.format == 'JPEG' and image.mode == 'RGB' and scale >= 1 and len(data) <= max(6000, image.width * image.height // 4):
            image.load()
            return data
        if image.format == 'JPEG':
            image.draft('RGB', tuple(max(1, int(v * min(1, 2 * scale))) for v in image.size))
        if image.mode in ('P', 'LA', 'RGBA', 'PA'):
            over = image.convert('RGBA')
            image = Image.new('RGBA', over.size, (255, 255, 255, 255))
            image.alpha_composite(over)
        image = image.convert('RGB')
        scale = side / min(image.size)
        if max(image.size) > 4 * min(image.size) or min(image.size) < 32:
            return None
        if scale < 1:
            image = image.resize([max(side, round(v * scale)) for v in image.size], Image.LANCZOS, reducing_gap=2.0)
        out = io.BytesIO()
        image.save(out, 'JPEG', quality=quality)
        return out.getvalue()
    except Exception:  # whatever a decoder makes of a broken file
        return None


def encode(job):
    git, out, quality, jobs = job
    done = []
    with subprocess.Popen(['git', '--git-dir=' + git, 'cat-file', '--batch'], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as cat:
        for blob, name, side in jobs:
            cat.stdin.write(blob.encode() + b'\n')
            cat.stdin.flush()
            head = cat.stdout.readline().split()
            if len(head) != 3:  # a snapshot may lack large files
                done.append((blob, name, 'absent'))
                continue
            data = cat.stdout.read(int(head[2]) + 1)[:-1]
            path = os.path.join(out, name)
            jpeg = smaller(data, side, quality)
            if jpeg is None:
                done.append((blob, name, 'unreadable'))
                continue
            os.makedirs(os.path.dirname(path), exist_ok=True)
            with open(path, 'wb') as file:
                file.write(jpeg)
            done.append((blob, name, 'kept'))
        cat.stdin.close()
    return done


def choose(entries, cap, seen):
    """At most `cap` images of a class, those whose blobs hash lowest; and how many blobs came twice."""
    classes, twice, here = collections.defaultdict(list), 0, set()
    for blob, kind in entries:
        if blob in seen or blob in here:
            twice += 1
            continue
        here.add(blob)
        classes[kind].append(blob)
    for kind in classes:
        if cap and len(classes[kind]) > cap:
            classes[kind] = sorted(classes[kind], key=lambda b: hashlib.sha256(b.encode()).digest())[:cap]
    return classes, twice


def split_of(row, kinds, kind):
    """Of a set that is halved, every second class by name is for judging."""
    if row['use'] == 'half':
        return 'test' if kinds.index(kind) % 2 else 'train'
    return 'test' if row['use'] == 'judge' else 'train'


def lay_out(row, mirrors, out, seen, pool):
    git, folder = git_dir(mirrors, row['repository']), os.path.join(out, row['set'])
    entries = list(listing(git, row['commit'], re.compile(row['pattern'])))
    classes, twice = choose(entries, int(row['cap']), seen)
    kinds = sorted(classes)
    sides = [int(side) for side in row['side'].split('/')]
    side_of = lambda kind: sides[-1 if split_of(row, kinds, kind) == 'test' else 0]
    jobs = [(blob, '%s/%s.jpg' % (kind, blob[:16]), side_of(kind)) for kind in kinds for blob in sorted(classes[kind])]
    parts = [(git, folder, int(row['quality']), jobs[i:i + 200]) for i in range(0, len(jobs), 200)]
    counts, lines = collections.Counter(found=len(entries), twice=twice, classes=len(kinds)), []
    for part in pool.imap(encode, parts):
        for blob, name, what in part:
            counts[what] += 1
            if what == 'kept':
                kind = name.split('/')[0]
                lines.append(('%s/%s' % (row['set'], name), kind, split_of(row, kinds, kind)))
    seen.update(job[0] for job in jobs)
    counts['chosen'] = len(jobs)
    counts['bytes'] = sum(os.path.getsize(os.path.join(out, line[0])) for line in lines)
    with open(os.path.join(out, row['set'] + '.csv.part'), 'w', newline='', encoding='utf-8') as file:
        writer = csv.writer(file, lineterminator='\n')
        writer.writerow(('path', 'label', 'split'))
        writer.writerows(lines)
    os.replace(os.path.join(out, row['set'] + '.csv.part'), os.path.join(out, row['set'] + '.csv'))
    keys = ('found', 'twice', 'chosen', 'absent', 'unreadable', 'kept', 'classes', 'bytes')
    with open(os.path.join(out, row['set'] + '.counts'), 'w', encoding='utf-8') as file:
        file.write(''.join('%s\t%d\n' % (key, counts[key]) for key in keys))
    print(row['set'], ' '.join('%s=%d' % (key, counts[key]) for key in keys), flush=True)


def shards(out, where, sets):
    """Tar files of what trains, set after set: SHARDS/00.tar, 01.tar ... In front of a set's images is its CSV, without the judged rows."""
    os.makedirs(where, exist_ok=True)
    number, tar, size = -1, None, SHARD
    for name in sets:
        with open(os.path.join(out, name + '.csv'), newline='', encoding='utf-8') as file:
            rows = list(csv.reader(file))
        rows = rows[:1] + [row for row in rows[1:] if row[2] == 'train']
        text = io.StringIO()
        csv.writer(text, lineterminator='\n').writerows(rows)
        for path in [name + '.csv'] + [row[0] for row in rows[1:]]:
            data = text.getvalue().encode() if path == name + '.csv' else open(os.path.join(out, path), 'rb').read()
            takes = 512 + -(-len(data) // 512) * 512
            if size + takes > SHARD - 20480:
                if tar:
                    tar.close()
                number, size = number + 1, 0
                tar = tarfile.open(os.path.join(where, '%02d.tar' % number), 'w', format=tarfile.USTAR_FORMAT)
            info = tarfile.TarInfo(path)
            info.size, info.mode = len(data), 0o644
            tar.addfile(info, io.BytesIO(data))
            size += takes
    if tar:
        tar.close()
    print('%d shards in %s' % (number + 1, where))


def main(argv):
    if len(argv) >= 4 and argv[0] == '--shards':
        return shards(argv[1], argv[2], argv[3:])
    if len(argv) < 3:
        sys.exit(__doc__)
    rows, mirrors, out, only = table(argv[0]), argv[1], argv[2], argv[3:]
    unknown = set(only) - {row['set'] for row in rows}
    if unknown:
        sys.exit('%s has no set %s' % (argv[0], ', '.join(sorted(unknown))))
    os.makedirs(out, exist_ok=True)
    seen, left = set(), set(only)
    with Pool(int(os.environ.get('WORKERS', '2'))) as pool:
        for row in rows:
            if only and row['set'] not in only:  # what comes before still takes its blobs, so that a part gives the same bytes as the whole
                entries = listing(git_dir(mirrors, row['repository']), row['commit'], re.compile(row['pattern']))
                seen.update(b for c in choose(entries, int(row['cap']), seen)[0].values() for b in c)
                continue
            lay_out(row, mirrors, out, seen, pool)
            left.discard(row['set'])
            if only and not left:
                return


if __name__ == '__main__':
    main(sys.argv[1:])
