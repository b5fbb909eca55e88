"""Whether a picture that came out of a stream is as new as it can be; pure policy, told all times, knows no stream."""

from __future__ import annotations

WAIT_SHARE = 0.25
"""A fetch that took longer than this share of the frame interval had to wait for the network."""

LEAST_WAIT_S = 0.004
"""A shorter wait than this may be the processor doing something else."""

TOLERANCE = 1.5
"""How many frame intervals behind the best delay still counts as new."""

RISE_S = 0.001
"""How much one waiting picture may raise the baseline: a hiccup cannot move it, a changed route does in seconds."""

CLOCK_JUMP_S = 5.0
"""A delay this much above the baseline means that the sender's clock was set anew."""


class Newest:
    """Tells pictures that lay in a buffer from those that have just arrived, without a thread and without looking in.

    Two signs, either of which is enough to hand a picture over:

    * **The fetch had to wait.** Then the buffers were empty, and nothing newer exists.
    * **The stream clock is not behind.** ``now - stamp`` of a picture that had to wait is what the way through the
      network costs at its best. A picture with about the same cost is new even when it was there at once, as the
      later ones of a burst are. A picture with a higher cost has lain somewhere: skip it, a newer one follows.

    Some formats carry counted stamps instead of times (motion JPEG over HTTP); for them only the first sign is used.
    """

    def __init__(self, interval_s: float) -> None:
        """Start without a baseline.

        Args:
            interval_s: usual distance of two pictures.
        """
        self._wait_s = max(LEAST_WAIT_S, WAIT_SHARE * interval_s)
        self._tolerance_s = TOLERANCE * interval_s
        self._base_s: float | None = None

    def is_newest(self, now_s: float, waited_s: float, stamp_s: float | None) -> bool:
        """Judge one picture; call it for every picture in order.

        Args:
            now_s: when the picture came out of the network.
            waited_s: how long the fetch took.
            stamp_s: the sender's time for it, any origin; ``None`` when it has none that can be trusted.

        Returns:
            ``False`` when a newer picture is there already.
        """
        waited = waited_s > self._wait_s
        if stamp_s is None or (self._base_s is None and not waited):
            return waited  # before the first wait, what piled up while the stream was opened looks like the normal cost
        cost_s = now_s - stamp_s
        if self._base_s is None or cost_s < self._base_s:
            self._base_s = cost_s
        elif waited:
            jumped = cost_s - self._base_s > CLOCK_JUMP_S
            self._base_s = cost_s if jumped else min(cost_s, self._base_s + RISE_S)
        return waited or cost_s - self._base_s <= self._tolerance_s
