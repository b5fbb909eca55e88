"""An owner who answers as a test says, and notes what was asked and told; knows no terminal."""

from __future__ import annotations

from dataclasses import dataclass, field

from engines.card import Licence, ModelCard


@dataclass
class ScriptedOwner:
    """``Owner`` and ``Watcher`` in one.

    Attributes:
        accept: the answer to every licence.
        trust: the answer to every file without a known hash.
        asked: "licence" or "file", in order.
        heard: what was said.
        seen: (done, total) of every movement.
    """

    accept: bool = True
    trust: bool = True
    asked: list[str] = field(default_factory=list)
    heard: list[str] = field(default_factory=list)
    seen: list[tuple[int, int]] = field(default_factory=list)

    def accepts(self, card: ModelCard, licence: Licence) -> bool:
        self.asked.append("licence")
        return self.accept

    def can_confirm(self, card: ModelCard) -> None:
        self.asked.append("will be asked")

    def confirms(self, card: ModelCard, sha256: str, size_bytes: int) -> bool:
        self.asked.append("file")
        return self.trust

    def said(self, text: str) -> None:
        self.heard.append(text)

    def moved(self, done_bytes: int, total_bytes: int) -> None:
        self.seen.append((done_bytes, total_bytes))
