"""Opens the models of a run by the names of their cards, each once, and says what really runs; knows no model."""

from __future__ import annotations

from contextlib import ExitStack
from types import TracebackType

from engines import registry, store
from engines.card import ModelCard, load_card
from engines.contract import Device, Engine, TensorSpec
from engines.errors import EngineError, ModelError


class Models:
    """The models of one run. A context: at its end all are closed.

    Args:
        runtime: see :func:`engines.registry.open_engine`; a model that it cannot serve takes its own first one.
        threads: see there.
        provider: see there.
        allow_cpu: see there.
        device: see there.
    """

    def __init__(
        self,
        runtime: str = "auto",
        threads: int = 0,
        provider: str = "auto",
        allow_cpu: bool = False,
        device: Device | None = None,
    ) -> None:
        self._runtime, self._threads, self._provider, self._allow_cpu = runtime, threads, provider, allow_cpu
        self._device = device
        self._opened: dict[tuple[str, int], Engine] = {}
        self._reasons: dict[str, str] = {}
        self._stack = ExitStack()

    def __enter__(self) -> Models:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        self._stack.close()

    @property
    def facts(self) -> tuple[tuple[str, str], ...]:
        """Name and runtime of every model that was opened, in that order, and why no better one, for the banner."""
        return tuple(
            (name, f"{engine.runtime}{self._reasons.get(name, '')}") for (name, _), engine in self._opened.items()
        )

    @property
    def improvable(self) -> tuple[str, ...]:
        """Names of the models that are kept open and would run in the device's memory, had they a plan for it."""
        return tuple(name for name, _ in self._opened if name in self._reasons)

    def card(self, name: str) -> ModelCard:
        """Read a card.

        Raises:
            ModelError: there is no such card, or it is wrong.
        """
        return load_card(name)

    def fingerprint(self, name: str) -> str:
        """Say which weights a model has, without opening it; see :func:`engines.store.fingerprint`.

        Raises:
            ModelError: there is no such card, or its file is missing.
        """
        card = self.card(name)
        return store.fingerprint(store.locate(card) or store.find(card), card)

    def open(self, name: str, batch: int = 1) -> Engine:
        """Open a model, or give it again: it is used by one thread, and whoever uses it may overwrite its outputs.

        Args:
            name: of its card.
            batch: pictures in one run.

        Raises:
            ModelError: the card is wrong, states no output or leaves the size of an input free; or its file is missing
                or damaged.
            EngineError: the runtime cannot be used.
        """
        if (name, batch) not in self._opened:
            card = self.card(name)
            if not card.outputs:
                raise ModelError(f"model card {name!r} states no output", "correct the card: name what is read from it")
            for spec in card.inputs:
                demand_size(card, spec)
            engine = self.open_apart(card, batch)
            self._stack.callback(engine.close)
            self._opened[name, batch] = engine
        return self._opened[name, batch]

    def open_apart(self, card: ModelCard, batch: int = 1, size: tuple[int, int] | None = None) -> Engine:
        """Open a model that is perhaps not kept: whoever asks closes it, and it is not in ``facts``.

        Args:
            card: of the model.
            batch: pictures in one run.
            size: of the pictures, see :func:`engines.registry.open_engine`.

        Raises:
            ModelError: its file is missing or damaged.
            EngineError: the runtime cannot be used.
        """
        if self._runtime == "auto":
            return self._open_on_device(card, batch, size) or self._open(card, "auto", batch, size)
        return self._open(card, self._runtime if registry.serves(self._runtime, card) else "auto", batch, size)

    def _open(self, card: ModelCard, runtime: str, batch: int, size: tuple[int, int] | None) -> Engine:
        return registry.open_engine(
            card, runtime, self._threads, self._provider, self._allow_cpu, batch, self._device, size
        )

    def _open_on_device(self, card: ModelCard, batch: int, size: tuple[int, int] | None) -> Engine | None:
        """Open a model in the memory of the device, where there is a plan for it; notes why not."""
        for name in registry.on_device(card, self._device):
            try:
                return self._open(card, name, batch, size)
            except EngineError as error:
                self._reasons[card.name] = f", not {name}: {error.message}"
        return None


def demand_size(card: ModelCard, spec: TensorSpec) -> None:
    """Refuse an input of any size: only what looks at whole pictures has one, everything else gets crops of one size.

    Args:
        card: for the error.
        spec: one of its inputs; any number of pictures is no size.

    Raises:
        ModelError: an axis besides that is free.
    """
    if -1 in spec.shape[spec.layout != "other" :]:
        raise ModelError(
            f"model card {card.name!r}: {spec.name!r} has an axis of any size: {list(spec.shape)}",
            "correct the card: state the size that the network was trained with",
        )
