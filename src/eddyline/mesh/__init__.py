"""Query Mesh: several routes, and the classifier that gives each row the one that suits it."""

from eddyline.mesh.mesh import Mesh, RowClass, route_words
from eddyline.mesh.search import Found, MeshOptions, Progress, find_mesh
from eddyline.mesh.training import TrainingSet

__all__ = [
    "Found",
    "Mesh",
    "MeshOptions",
    "Progress",
    "RowClass",
    "TrainingSet",
    "find_mesh",
    "route_words",
]
