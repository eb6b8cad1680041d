"""Index assessment: which access patterns the searches of a SteM have, one method to a file."""

from eddyline.index.assessment.assessment import Assessment
from eddyline.index.assessment.cdia import CDIA
from eddyline.index.assessment.csria import CSRIA
from eddyline.index.assessment.dia import DIA, benefits, children, parents
from eddyline.index.assessment.sria import SRIA

#: All methods, by name.
ASSESSMENTS: dict[str, type[Assessment]] = {
    assessment.name: assessment for assessment in (SRIA, CSRIA, DIA, CDIA)
}

__all__ = [
    "ASSESSMENTS",
    "CDIA",
    "CSRIA",
    "DIA",
    "SRIA",
    "Assessment",
    "benefits",
    "children",
    "parents",
]
