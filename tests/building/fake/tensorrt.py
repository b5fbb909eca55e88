"""Stands in for TensorRT's bindings where a plan is built; follows the script in an environment variable.

Its plan has the header of a real one, then, as JSON, everything that the builder was asked for.
"""

from __future__ import annotations

import enum
import json
import os
import signal
import time
from typing import Any

__version__ = os.environ.get("FAKE_TENSORRT_VERSION", "11.4.0.106")
SCRIPT = os.environ.get("FAKE_TENSORRT", "")
HEADER = b"ftrt".ljust(24, b"\0") + bytes(int(part) for part in __version__.split("."))
CACHE = b"timings of this GPU"


class NetworkDefinitionCreationFlag(enum.IntEnum):
    STRONGLY_TYPED = 1


class BuilderFlag(enum.Enum):
    TF32 = "TF32"
    STRICT_NANS = "STRICT_NANS"


class MemoryPoolType(enum.Enum):
    WORKSPACE = "WORKSPACE"


class ILogger:
    INTERNAL_ERROR, ERROR, WARNING, INFO = range(4)

    def log(self, severity: int, msg: str) -> None:
        raise NotImplementedError


class IProgressMonitor:
    def phase_start(self, phase_name: str, parent_phase: str | None, num_steps: int) -> None:
        raise NotImplementedError

    def step_complete(self, phase_name: str, step: int) -> bool:
        raise NotImplementedError

    def phase_finish(self, phase_name: str) -> None:
        raise NotImplementedError


class Profile:
    def __init__(self) -> None:
        self.shapes: dict[str, list[tuple[int, ...]]] = {}

    def set_shape(self, input: str, min: tuple[int, ...], opt: tuple[int, ...], max: tuple[int, ...]) -> None:  # noqa: A002  (TensorRT's names)
        if SCRIPT == "takes no shapes":
            raise ValueError("Shape provided for min is inconsistent with other shapes.")
        self.shapes[input] = [min, opt, max]


class Cache:
    def __init__(self, data: bytes) -> None:
        self.data = data

    def serialize(self) -> bytes:
        return CACHE


class Config:
    def __init__(self) -> None:
        self.asked: dict[str, Any] = {"on": [], "off": [], "pools": {}, "cache": None}
        self.progress_monitor = IProgressMonitor()
        self.max_aux_streams = -1
        self.builder_optimization_level = -1
        self.cache: Cache | None = None

    def set_flag(self, flag: BuilderFlag) -> None:
        self.asked["on"].append(flag.value)

    def clear_flag(self, flag: BuilderFlag) -> None:
        self.asked["off"].append(flag.value)

    def set_memory_pool_limit(self, pool: MemoryPoolType, pool_size: int) -> None:
        self.asked["pools"][pool.value] = pool_size

    def add_optimization_profile(self, profile: Profile) -> int:
        self.asked["profile"] = profile.shapes
        return -1 if SCRIPT == "takes no profile" else 0

    def create_timing_cache(self, serialized_timing_cache: bytes) -> Cache:
        return Cache(serialized_timing_cache)

    def set_timing_cache(self, cache: Cache, ignore_mismatch: bool) -> bool:
        assert not ignore_mismatch
        if cache.data not in (b"", CACHE):
            return False
        self.cache, self.asked["cache"] = cache, cache.data.decode()
        return True

    def get_timing_cache(self) -> Cache | None:
        return self.cache


class Network:
    def __init__(self, flags: int) -> None:
        self.flags, self.parsed = flags, b""


class ParserError:
    def __init__(self, number: int) -> None:
        self.number = number

    def desc(self) -> str:
        return f"no converter for it, {self.number}"

    def node_name(self) -> str:
        return f"node_{self.number}"

    def node_operator(self) -> str:
        return "Strange"


class OnnxParser:
    def __init__(self, network: Network, logger: ILogger) -> None:
        self.network, self.num_errors = network, 7 if SCRIPT == "does not parse" else 0

    def get_error(self, index: int) -> ParserError:
        return ParserError(index)

    def parse(self, model: bytes) -> bool:
        self.network.parsed = model
        return not self.num_errors


class Builder:
    def __init__(self, logger: ILogger) -> None:
        if SCRIPT == "does not start":
            logger.log(ILogger.ERROR, "CUDA initialization failure")
            raise TypeError("factory function returned nullptr")
        self.logger = logger

    def create_network(self, flags: int) -> Network:
        return Network(flags)

    def create_builder_config(self) -> Config:
        return Config()

    def create_optimization_profile(self) -> Profile:
        return Profile()

    def build_serialized_network(self, network: Network, config: Config) -> bytes | None:
        monitor = config.progress_monitor
        monitor.phase_start("Building Engine", None, 2)
        monitor.phase_start("Timing", "Building Engine", 4)
        for step in range(4):
            if step == 2:
                self._misbehave()
            if not monitor.step_complete("Timing", step):
                return None
        monitor.phase_finish("Timing")
        monitor.step_complete("Building Engine", 0)
        self.logger.log(ILogger.INFO, "nobody wants to know")
        self.logger.log(ILogger.WARNING, "half of it is slow")
        if SCRIPT == "runs out of memory":
            self.logger.log(ILogger.ERROR, "Could not allocate: out of memory")
            return None
        monitor.phase_finish("Building Engine")
        asked = {**config.asked, "flags": network.flags, "aux": config.max_aux_streams, "network": len(network.parsed)}
        return HEADER + json.dumps({**asked, "level": config.builder_optimization_level}).encode()

    def _misbehave(self) -> None:
        if SCRIPT == "crashes":
            os.kill(os.getpid(), signal.SIGSEGV)
        if SCRIPT == "prints":
            os.write(1, b"a library talks on the standard output\n")
        if SCRIPT == "has a bug":
            _ = 1 // 0
        while SCRIPT == "hangs":
            time.sleep(0.05)
