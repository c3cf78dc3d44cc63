"""What is wrong with a data set: kith.examine."""

import os
from dataclasses import dataclass
from typing import Any, List, Optional

from numpy.typing import ArrayLike

from ._arrays import matrix
from ._calls import call
from ._images import Path
from ._library import encode, ffi, lib, options, text
from ._work import Progress, Work


@dataclass(frozen=True)
class Finding:
    """One thing that is wrong."""

    #: "unreadable", "leak", "conflict", "mislabelled" and so on: docs/data.md.
    kind: str
    #: "error", "warning" or "note".
    severity: str
    text: str
    #: The images it is about, and whether each should be left out.
    paths: List[str]
    leave_out: List[bool]
    #: What it means depends on the kind: kith/doctor.h.
    score: float
    #: Of "mislabelled" and "odd": the picture that it is compared with. Else None.
    example: Optional[str] = None


@dataclass(frozen=True)
class Findings:
    """What is wrong with a data set, the worst first."""

    findings: List[Finding]
    n_images: int
    #: Images that should be left out.
    leave_out: List[str]

    def __str__(self) -> str:
        kinds = [f"{sum(f.severity == s for f in self.findings)} {s}s" for s in ("error", "warning", "note")]
        return f"{self.n_images} images, {', '.join(kinds)}, {len(self.leave_out)} images to leave out"


def examine(data: Path, *, kind: Optional[str] = None, model: Optional[Path] = None, vectors: Optional[ArrayLike] = None,
            compare: bool = True, shortcut: bool = True, out: Optional[Path] = None, html: Optional[Path] = None, progress: Optional[Progress] = None) -> Findings:
    """Look at every image of a data set and say what is wrong with it: unreadable files, the same picture twice, labels that look wrong, odd ones out …

    data: a folder with a folder per class, a manifest, or a data set of another layout (kind=), or a recipe. Images are compared by the
    embedding of `model` (a run or a file; without: general), or by `vectors` [n, dim] of all images in order; compare=False: not at all. shortcut=False: do
    not look whether the surroundings give the classes away, which embeds up to 2,000 images again. out: also write a manifest of the images without
    what should be left out. html: also write the findings with pictures, as one page.
    """
    name = encode(os.fspath(data))
    made = ffi.new("kith_dataset **")
    if name.lower().endswith((b".yaml", b".yml")):
        call(lib.kith_dataset_open_recipe, name, made)
    else:
        call(lib.kith_dataset_open, ffi.NULL if kind is None else encode(kind), name, made)
    dataset = ffi.gc(made[0], lib.kith_dataset_free)
    option = options("kith_doctor_options")
    option.no_vectors = not compare
    option.no_shortcut = not shortcut
    kept: List[Any] = []
    if model is not None:
        which = options("kith_model_options")
        kept.append(ffi.new("char[]", encode(os.fspath(model))))
        which.weights = kept[0]
        option.model = which
        kept.append(which)
    if vectors is not None:
        given = matrix(vectors, "vectors")
        option.vectors = given.array
        kept.append(given)
    work = Work(progress)
    work.watch(option)
    found = ffi.gc(ffi.new("kith_findings *"), lib.kith_findings_release)
    work.call(lib.kith_dataset_examine, dataset, option, found)
    if out is not None:
        call(lib.kith_findings_write, found, dataset, encode(os.fspath(out)))
    if html is not None:
        call(lib.kith_findings_page_write, found, dataset, options("kith_findings_page"), encode(os.fspath(html)))

    def path(item: int) -> str:
        return text(lib.kith_dataset_item(dataset, item).path)

    def finding(c: Any) -> Finding:
        items = [found.items[k] for k in range(c.begin, c.begin + c.n)]
        return Finding(text(lib.kith_finding_kind_name(c.kind)), text(lib.kith_severity_name(c.severity)), text(c.text),
                       [path(i) for i in items], [found.why_out[i] >= 0 for i in items], c.score,
                       path(c.example) if c.example >= 0 else None)

    return Findings([finding(found.findings[i]) for i in range(found.n)], found.n_items,
                    [path(i) for i in range(found.n_items) if found.why_out[i] >= 0])
