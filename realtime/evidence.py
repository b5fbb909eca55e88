"""Weighs what the two networks say about a candidate; knows two numbers, no pictures."""

from __future__ import annotations

FACE_ODDS = 150.0
"""Odds to one, both networks together, from which a candidate is a face. Measured on 20 webcam clips and a portrait:
nothing that is no face (skulls and badges printed on clothes, hands) reached 21. No face fell below 20000, and none
below 280 with a bar over its eyes or over its mouth and nose."""


def is_face(score: float, presence: float) -> bool:
    """Whether a candidate is a face: the product of both networks' odds says so.

    One network alone is not enough: a badge on a suit passes the mesh network with a presence of 0.96 and a printed
    skull the detector with a score of 0.8, but neither passes both.

    Args:
        score: of the detector, 0..1.
        presence: of the mesh network in its own crop, 0..1.
    """
    return score * presence > FACE_ODDS * (1 - score) * (1 - presence)
