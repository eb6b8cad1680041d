"""Reports: numbers (`model`, `run`), what they say (`describe`), and one renderer each for
terminals (`text`) and pages (`html`), which escape everything that came from users.
"""

from eddyline.report.model import ActionLine, ClassLine, NativeOrderLine, PredicateLine, Report
from eddyline.report.run import MicroBatch, QueryState, QueryStates, RunReport

__all__ = [
    "ActionLine",
    "ClassLine",
    "MicroBatch",
    "NativeOrderLine",
    "PredicateLine",
    "QueryState",
    "QueryStates",
    "Report",
    "RunReport",
]
