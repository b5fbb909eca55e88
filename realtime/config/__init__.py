"""Settings: what they are, where they come from, how they are remembered; knows no object that obeys them."""

from realtime.config.layers import Layer, flag, from_set_options, read_layer, read_value, resolve
from realtime.config.settings import Settings, all_keys, allowed_text, bounds
from realtime.config.store import (
    changed,
    default_layer,
    load,
    profile_layer,
    profile_names,
    read_last_run,
    remember,
    save_profile,
)

__all__ = [
    "Layer",
    "Settings",
    "all_keys",
    "allowed_text",
    "bounds",
    "changed",
    "default_layer",
    "flag",
    "from_set_options",
    "load",
    "profile_layer",
    "profile_names",
    "read_last_run",
    "read_layer",
    "read_value",
    "remember",
    "resolve",
    "save_profile",
]
