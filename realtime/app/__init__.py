"""The only place where names become objects: opens what the settings name, in order, and closes it in reverse."""

from realtime.app.background import upgrading
from realtime.app.faces import SourceFaces, load_faces
from realtime.app.fallback import Scene, open_run, set_up
from realtime.app.network import on_network
from realtime.app.networks import MESH_CARD, Networks, open_networks
from realtime.app.path import build_budget, build_chooser, build_pipeline
from realtime.app.show import Ends, build_show, name_ends, open_again, open_one_sink

__all__ = [
    "MESH_CARD",
    "Ends",
    "Networks",
    "Scene",
    "SourceFaces",
    "build_budget",
    "build_chooser",
    "build_pipeline",
    "build_show",
    "load_faces",
    "name_ends",
    "on_network",
    "open_again",
    "open_networks",
    "open_one_sink",
    "open_run",
    "set_up",
    "upgrading",
]
