"""Reports: the numbers (`model`), and one renderer each for terminals and for pages."""

from eddyline.report.model import ClassLine, PredicateLine, Report, as_text

__all__ = ["ClassLine", "PredicateLine", "Report", "as_text"]
