"""The process that Spark's Python workers on one computer are copies of.

It has loaded what they use, so that each of them need not.  pandas they do not use; pyarrow
would load it unasked, for 0.3 to 1.2 CPU-seconds and 40 MB.
"""

import sys


class _NoPandas:
    @staticmethod
    def find_spec(name, path=None, target=None):
        if name == "pandas":
            raise ModuleNotFoundError("left out", name=name)


sys.meta_path.insert(0, _NoPandas)

from pyspark.daemon import manager  # noqa: E402

from . import steps  # noqa: E402, F401

if __name__ == "__main__":
    manager()
