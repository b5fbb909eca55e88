"""Mixes the identity that a swapper shows with that of the person in view; knows looks and latents, no crop's path."""

from __future__ import annotations

from collections.abc import Callable, Collection

from realtime.meter import Meter
from realtime.people.beat import Beat
from realtime.people.cast import Looks
from realtime.people.embedding import Embedding, mean_of, mixed
from realtime.swappers import Look, Painted
from realtime.swappers.crop import CropSwapper, is_in
from realtime.types import F32, U8, Face


class LikenessSwapper:
    """A ``Swapper`` around another one, whose latent it rewrites for each person. Used by one thread.

    The person in view is recognised as a newcomer and then at a slow beat, see :class:`realtime.people.beat.Beat`. Each
    further look counts as much as all before it together, so a bad one fades.

    Args:
        swapper: that paints.
        latent: the (1, n) float32 that it shows; overwritten before each swap.
        source: whose face is shown.
        likeness: of the new face to it, 0..1; see :func:`realtime.people.embedding.mixed`.
        recogniser: that made ``source``.
        latent_of: turns an embedding into a latent.
        meter: gets the lap "recognise", in frames in which somebody is looked at.
    """

    def __init__(
        self,
        swapper: CropSwapper,
        latent: F32,
        source: Embedding,
        likeness: float,
        recogniser: Looks,
        latent_of: Callable[[Embedding], F32],
        meter: Meter,
    ) -> None:
        self._swapper, self._latent, self._source, self._likeness = swapper, latent, source, likeness
        self._recogniser, self._latent_of, self._meter = recogniser, latent_of, meter
        self._beat = Beat()
        self._targets: dict[int, Embedding] = {}
        self._latents: dict[int, F32] = {}

    def swap(self, pixels: U8, face: Face, now_s: float, steps: Collection[str]) -> bool:
        """See :class:`realtime.swappers.Swapper`.

        Raises:
            EngineError: a network failed; not a pixel has changed.
        """
        if not is_in(face, pixels):
            return False
        if self._beat.is_due(face.track_id, now_s):
            with self._meter.lap("recognise"):
                self._look(pixels, face, now_s)
        self._latent[:] = self._latents[face.track_id]
        return self._swapper.swap(pixels, face, now_s, steps)

    @property
    def painted(self) -> Painted | None:
        """See :class:`realtime.swappers.Swapper`."""
        return self._swapper.painted

    def forget(self, followed: Collection[int]) -> None:
        """See :class:`realtime.swappers.Swapper`."""
        for track_id in [track_id for track_id in self._targets if track_id not in followed]:
            del self._targets[track_id], self._latents[track_id]
        self._beat.forget(followed)
        self._swapper.forget(followed)

    def relook(self, look: Look) -> bool:
        """See :class:`realtime.swappers.Swapper`."""
        return self._swapper.relook(look)

    def _look(self, pixels: U8, face: Face, now_s: float) -> None:
        seen = self._recogniser.embed(pixels, face.points5)
        before = self._targets.get(face.track_id)
        target = mean_of([before, seen]) if before else seen
        self._latents[face.track_id] = self._latent_of(mixed(self._source, target, self._likeness))
        self._targets[face.track_id] = target
        self._beat.looked(face.track_id, now_s)
