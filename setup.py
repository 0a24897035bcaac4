"""Lets contracts, settings and the sample travel with the wheel, from where they lie in the repository."""

import shutil
from pathlib import Path

from setuptools import setup
from setuptools.command.build_py import build_py

SHIPPED = ("schemas", "conf", "data/sample")


class BuildPy(build_py):
    """build_py, and then the folders above as mqreplay/shipped/...; an editable install reads them in place."""

    def run(self) -> None:
        """Copies the folders after the modules; what an earlier build left is removed first."""
        super().run()
        if getattr(self, "editable_mode", False):
            return
        for name in SHIPPED:
            target = Path(self.build_lib, "mqreplay", "shipped", name)
            shutil.rmtree(target, ignore_errors=True)
            shutil.copytree(name, target)


setup(cmdclass={"build_py": BuildPy})
