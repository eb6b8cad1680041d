"""Query Mesh: several routes, and the classifier that gives each row the one that suits it."""

from eddyline.mesh.cost import Overheads
from eddyline.mesh.mesh import Mesh, RowClass, flat_route, route_words
from eddyline.mesh.options import MeshOptions
from eddyline.mesh.search import Progress, SearchResult, find_mesh
from eddyline.mesh.training import TrainingSet

__all__ = [
    "Mesh",
    "MeshOptions",
    "Overheads",
    "Progress",
    "RowClass",
    "SearchResult",
    "TrainingSet",
    "find_mesh",
    "flat_route",
    "route_words",
]
