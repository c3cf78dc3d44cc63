#!/usr/bin/env python3
"""Do kith and Python's huggingface_hub find what the other fetched? hub_both_ways.py PROGRAM [CERTIFICATE KEY]

Needs the built program, python3 and huggingface_hub, and no network: the hub is a server of this script on 127.0.0.1, which
answers as the real one does (headers before a redirect, the bytes from another port), over TLS where a certificate is given (both
then find its authority by SSL_CERT_FILE). Prints a line for each check and exits with 1 if one failed, with 77 if huggingface_hub is not there.

hub_both_ways.py --serve [CERTIFICATE KEY] only serves: it prints the hub's address and ends when its parent does. The repository
is kith-test/tiny.
"""

import hashlib
import http.server
import json
import os
import pathlib
import ssl
import struct
import subprocess
import sys
import tempfile
import threading
import time

REPO, COMMIT = "kith-test/tiny", "0123456789abcdef0123456789abcdef01234567"
OTHER_COMMIT = "89abcdef0123456789abcdef0123456789abcdef"


def safetensors():
    """A file with one tensor, a few hundred kB so that a download has parts."""
    values = bytes(range(256)) * 1200
    header = json.dumps({"layer.weight": {"dtype": "F32", "shape": [len(values) // 4], "data_offsets": [0, len(values)]}})
    return struct.pack("<Q", len(header)) + header.encode() + values


def git_hash(data):
    return hashlib.sha1(b"blob %d\0" % len(data) + data).hexdigest()


FILES = {
    "model.safetensors": safetensors(),
    "config.json": json.dumps({"architecture": "resnet50", "pretrained_cfg": {"input_size": [3, 224, 224]}}).encode(),
}


class Handler(http.server.BaseHTTPRequestHandler):
    """The hub, and on its second port the storage that it redirects to."""

    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def answer(self, status, headers, body=b""):
        self.send_response(status)
        headers.setdefault("Content-Length", str(len(body)))
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def send_file(self, data, headers):
        asked = self.headers.get("Range")
        first = int(asked[len("bytes="):].split("-")[0]) if asked else 0
        if first:
            headers["Content-Range"] = f"bytes {first}-{len(data) - 1}/{len(data)}"
        self.answer(206 if first else 200, headers, data[first:])

    def do_HEAD(self):
        self.do_GET()

    def do_GET(self):
        if self.path.startswith("/storage/"):
            self.send_file(FILES[self.path.rsplit("/", 1)[1]], {"ETag": '"of-the-storage"'})
            return
        parts = self.path.split("/resolve/")
        if parts[0] != "/" + REPO or len(parts) != 2:
            self.answer(404, {"X-Error-Code": "RepoNotFound"})
            return
        revision, name = parts[1].split("/", 1)
        commit = {"main": COMMIT, COMMIT: COMMIT, "v2": OTHER_COMMIT, OTHER_COMMIT: OTHER_COMMIT}.get(revision)
        if commit is None:
            self.answer(404, {"X-Error-Code": "RevisionNotFound"})
        elif name not in FILES:
            self.answer(404, {"X-Error-Code": "EntryNotFound", "X-Repo-Commit": commit})
        elif name == "model.safetensors":
            data = FILES[name]
            self.answer(302, {
                "X-Repo-Commit": commit,
                "X-Linked-Size": str(len(data)),
                "X-Linked-Etag": f'"{hashlib.sha256(data).hexdigest()}"',
                "Location": f"{self.server.storage}/storage/{name}",
            })
        else:
            self.send_file(FILES[name], {"X-Repo-Commit": commit, "ETag": f'"{git_hash(FILES[name])}"'})


def serve(certificate=()):
    """Both servers; the address of the hub. certificate: its file and that of its key, or nothing."""
    servers = [http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) for _ in range(2)]
    addresses = [f"http{'s' if certificate else ''}://127.0.0.1:{server.server_address[1]}" for server in servers]
    for server in servers:
        server.storage = addresses[1]
        if certificate:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(*certificate)
            server.socket = context.wrap_socket(server.socket, server_side=True)
        threading.Thread(target=server.serve_forever, daemon=True).start()
    return addresses[0]


def serve_only(certificate):
    parent = os.getppid()
    print(serve(certificate), flush=True)
    while os.getppid() == parent:
        time.sleep(0.2)


class Checks:
    def __init__(self):
        self.n = self.n_failed = 0

    def __call__(self, what, is_true, found=""):
        self.n += 1
        self.n_failed += not is_true
        print(("ok      " if is_true else "FAILED  ") + what + (f": found {found}" if not is_true else ""))


def main():
    if len(sys.argv) not in (2, 4):
        sys.exit(__doc__)
    if sys.argv[1] == "--serve":
        serve_only(sys.argv[2:])
        return
    program = os.path.abspath(sys.argv[1])
    endpoint = serve(sys.argv[2:])
    check = Checks()
    with tempfile.TemporaryDirectory() as folder:
        mine, theirs = os.path.join(folder, "by kith"), os.path.join(folder, "by python")
        os.environ.update(HF_ENDPOINT=endpoint, HF_HOME=os.path.join(folder, "home"), HF_HUB_DISABLE_XET="1")
        os.environ.pop("HF_TOKEN", None)
        os.environ.pop("HF_HUB_OFFLINE", None)
        try:
            import huggingface_hub as hub
        except ImportError:
            print("skipped: huggingface_hub is not there")
            sys.exit(77)
        print("huggingface_hub", hub.__version__, "over", endpoint.split(":")[0])

        def kith(cache, *words):
            done = subprocess.run([program, "pull", *words], env={**os.environ, "HF_HUB_CACHE": cache},
                                  capture_output=True, text=True, check=False)
            return done.returncode, done.stdout + done.stderr

        # What kith fetched, Python finds.
        for name in (REPO, REPO + "@v2"):
            status, text = kith(mine, name)
            check(f"kith pull {name}", status == 0, text)
        for file, data in FILES.items():
            for revision, commit in (("main", COMMIT), ("v2", OTHER_COMMIT), (COMMIT, COMMIT)):
                found = hub.try_to_load_from_cache(REPO, file, cache_dir=mine, revision=revision)
                check(f"try_to_load_from_cache {file} {revision}",
                      isinstance(found, str) and commit in found and pathlib.Path(found).read_bytes() == data, found)
                found = hub.hf_hub_download(REPO, file, cache_dir=mine, revision=revision, local_files_only=True)
                check(f"hf_hub_download(local_files_only) {file} {revision}", pathlib.Path(found).read_bytes() == data, found)
        before = {p: p.stat().st_mtime_ns for p in pathlib.Path(mine).rglob("*") if p.is_file() and "blobs" in p.parts}
        hub.hf_hub_download(REPO, "model.safetensors", cache_dir=mine)
        after = {p: p.stat().st_mtime_ns for p in pathlib.Path(mine).rglob("*") if p.is_file() and "blobs" in p.parts}
        check("hf_hub_download fetches nothing again", before == after, sorted(set(after) ^ set(before)))
        scan = hub.scan_cache_dir(mine)
        check("scan_cache_dir has no warnings", not scan.warnings, scan.warnings)
        repos = {r.repo_id: r for r in scan.repos}
        check("scan_cache_dir finds the repository", list(repos) == [REPO], list(repos))
        refs = sorted(ref for r in repos[REPO].revisions for ref in r.refs)
        check("scan_cache_dir finds the revisions", refs == ["main", "v2"], refs)
        check("scan_cache_dir finds the bytes once", repos[REPO].size_on_disk == sum(map(len, FILES.values())),
              repos[REPO].size_on_disk)

        # What Python fetched, kith finds.
        for file in FILES:
            hub.hf_hub_download(REPO, file, cache_dir=theirs)
        status, text = kith(theirs, "--list", "--json")
        listed = json.loads(text) if status == 0 else []
        check("kith pull --list finds it", [e["repo"] for e in listed] == [REPO] and listed[0]["revision"] == "main", text)
        os.environ["HF_HUB_OFFLINE"] = "1"
        status, text = kith(theirs, REPO)
        check("kith pull offline takes what is there", status == 0 and "was in the cache" in text, text)
        del os.environ["HF_HUB_OFFLINE"]
        status, text = kith(theirs, REPO)
        check("kith pull fetches nothing again", status == 0 and "was in the cache" in text, text)
        done = subprocess.run([program, "embed", "hub:" + REPO, "x.jpg", "-o", os.path.join(folder, "x.npy")],
                              env={**os.environ, "HF_HUB_CACHE": theirs}, capture_output=True, text=True, check=False)
        check("hub:NAME opens the file", "layer.weight" in done.stderr, done.stderr)

        # One goes on in the other's cache, and removes there.
        status, text = kith(theirs, REPO + "@v2")
        check("kith pull adds a revision to Python's cache", status == 0, text)
        check("Python's cache is still sound", not hub.scan_cache_dir(theirs).warnings, hub.scan_cache_dir(theirs).warnings)
        status, text = kith(theirs, "--remove", REPO + "@v2")
        scan = hub.scan_cache_dir(theirs)
        check("kith pull --remove of a revision leaves the other",
              status == 0 and not scan.warnings and [r.commit_hash for r in list(scan.repos)[0].revisions] == [COMMIT], text)
        check("and its bytes", list(scan.repos)[0].size_on_disk == sum(map(len, FILES.values())), scan)
        status, text = kith(theirs, "--remove", REPO)
        scan = hub.scan_cache_dir(theirs)
        check("kith pull --remove removes all", status == 0 and not scan.repos and not scan.warnings, text)
        hub.scan_cache_dir(mine).delete_revisions(COMMIT, OTHER_COMMIT).execute()
        status, text = kith(mine, "--list", "--json")
        check("what Python deletes, kith does not find", status == 0 and json.loads(text) == [], text)
    print(f"{check.n} checks, {check.n_failed} failed")
    sys.exit(1 if check.n_failed else 0)


if __name__ == "__main__":
    main()
