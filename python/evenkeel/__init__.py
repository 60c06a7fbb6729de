"""Keys of hash-partitioned columnar tables, chosen before there is data to move.

``evaluate`` finds the partition key, the primary key and the number of partitions that suit an
export or a frame; ``Table`` creates, fills and queries such a table; ``place`` computes the
partition of each key, exactly as YDB and other systems do; ``capacity`` and ``spanner`` are models
of nodes and of range splits. The program ``evenkeel`` is part of the package.
"""

import atexit

from evenkeel import _evenkeel
from evenkeel._errors import Error, ForkError, ThresholdError, UsageError
from evenkeel._evaluation import Evaluation, JoinEvaluation, evaluate
from evenkeel._evenkeel import __version__
from evenkeel._models import capacity, lint, place, placements, spanner
from evenkeel._report import Record, Records, Report
from evenkeel._result import Result
from evenkeel._table import Table

__all__ = [
    "Error",
    "Evaluation",
    "ForkError",
    "JoinEvaluation",
    "Record",
    "Records",
    "Report",
    "Result",
    "Table",
    "ThresholdError",
    "UsageError",
    "__version__",
    "capacity",
    "evaluate",
    "lint",
    "place",
    "placements",
    "spanner",
]

# Other threads may read a source that calls Python, which is not possible once it has ended.
atexit.register(_evenkeel.stop_sources)
