"""The figures of a run as Prometheus reads them; knows the meter and the peers, asks nothing of its own."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from prometheus_client import CollectorRegistry
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.exposition import CONTENT_TYPE_LATEST, generate_latest
from prometheus_client.registry import Collector

from realtime.meter import Percentiles, Stats
from realtime.web.peers import PeerInfo

_QUANTILES = (("0.5", "p50"), ("0.95", "p95"), ("0.99", "p99"))


def exposition(stats: Stats, peers: Sequence[PeerInfo]) -> tuple[bytes, str]:
    """Write everything down.

    Args:
        stats: of the run so far.
        peers: who is connected.

    Returns:
        The text, and its content type.
    """
    registry = CollectorRegistry(auto_describe=False)
    registry.register(_Snapshot(stats, peers))
    return generate_latest(registry), CONTENT_TYPE_LATEST


class _Snapshot(Collector):
    """One look at a run."""

    def __init__(self, stats: Stats, peers: Sequence[PeerInfo]) -> None:
        self._stats, self._peers = stats, peers

    def collect(self) -> Iterator[Metric]:
        stats = self._stats
        yield CounterMetricFamily("doppelcam_frames", "Pictures that were worked on", stats.frames)
        rate = GaugeMetricFamily("doppelcam_fps", "Pictures per second, last moments", labels=["end"])
        rate.add_metric(["in"], stats.recent.fps_in)
        rate.add_metric(["out"], stats.recent.fps_out)
        yield rate
        yield _quantiles("doppelcam_latency_seconds", "From capture to output", "output", stats.recent.latency_ms)
        yield _quantiles("doppelcam_step_seconds", "Time of a step", "step", stats.recent.steps)
        yield _counts("doppelcam_dropped_frames", "Pictures never shown", "cause", stats.drops)
        yield _counts("doppelcam_events", "Anything else that was counted", "event", stats.counters)
        peers = GaugeMetricFamily("doppelcam_peers", "Connected by WebRTC", labels=["kind", "state"])
        for kind, state in {(peer.kind, peer.state) for peer in self._peers}:
            peers.add_metric([kind, state], sum((peer.kind, peer.state) == (kind, state) for peer in self._peers))
        yield peers
        sent = GaugeMetricFamily("doppelcam_sent_kbps", "Bit rate to each viewer by codec", labels=["codec"])
        for codec, kbps in {(peer.codec, peer.kbps) for peer in self._peers if peer.codec}:
            sent.add_metric([codec], kbps)
        yield sent


def _quantiles(name: str, words: str, label: str, table: dict[str, Percentiles]) -> Metric:
    family = GaugeMetricFamily(name, f"{words}, last moments", labels=[label, "quantile"])
    for key, figures in table.items():
        for quantile, field in _QUANTILES:
            family.add_metric([key, quantile], getattr(figures, field) / 1e3)
    return family


def _counts(name: str, words: str, label: str, table: dict[str, int]) -> Metric:
    family = CounterMetricFamily(name, words, labels=[label])
    for key, count in table.items():
        family.add_metric([key], count)
    return family
