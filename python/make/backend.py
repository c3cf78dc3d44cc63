"""Lets pip build the package from a tree of the sources: `pip install ./python` runs scripts/wheel.sh (PEP 517)."""

import glob
import os
import shutil
import subprocess
from typing import Any, Optional

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


def build_wheel(wheel_directory: str, config_settings: Optional[Any] = None, metadata_directory: Optional[str] = None) -> str:
    out = os.path.join(ROOT, "build", "wheel")
    subprocess.run([os.path.join(ROOT, "scripts", "wheel.sh"), out], check=True)
    made = max(glob.glob(os.path.join(out, "*.whl")), key=os.path.getmtime)
    shutil.copy(made, wheel_directory)
    return os.path.basename(made)


def build_sdist(sdist_directory: str, config_settings: Optional[Any] = None) -> str:
    raise NotImplementedError("the sources are the repository: there is no sdist")
