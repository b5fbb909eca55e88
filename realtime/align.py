"""Cuts faces upright: the alignment templates and the transform that takes a face onto one; knows five points only."""

from __future__ import annotations

import numpy as np

from realtime import geometry
from realtime.types import F32, F64

TEMPLATES: dict[str, tuple[tuple[float, float], ...]] = {
    "arcface_112_v1": (
        (0.35473214, 0.45658929),
        (0.64526786, 0.45658929),
        (0.50000000, 0.61154464),
        (0.37913393, 0.77687500),
        (0.62086607, 0.77687500),
    ),
    "arcface_112_v2": (
        (0.34191607, 0.46157411),
        (0.65653393, 0.45983393),
        (0.50022500, 0.64050536),
        (0.37097589, 0.82469196),
        (0.63151696, 0.82325089),
    ),
    "arcface_128": (
        (0.36167656, 0.40387734),
        (0.63696719, 0.40235469),
        (0.50019687, 0.56044219),
        (0.38710391, 0.72160547),
        (0.61507734, 0.72034453),
    ),
    "dfl_whole_face": (
        (0.35342266, 0.39285716),
        (0.62797622, 0.39285716),
        (0.48660713, 0.54017860),
        (0.38839287, 0.68750011),
        (0.59821427, 0.68750011),
    ),
    "ffhq_512": (
        (0.37691676, 0.46864664),
        (0.62285697, 0.46912813),
        (0.50123859, 0.61331904),
        (0.39308822, 0.72541100),
        (0.61150205, 0.72490465),
    ),
    "mtcnn_512": (
        (0.36562865, 0.46733799),
        (0.63305391, 0.46585885),
        (0.50019127, 0.61942959),
        (0.39032951, 0.77598822),
        (0.61178945, 0.77476328),
    ),
    "styleganex_384": (
        (0.42353745, 0.52289879),
        (0.57725008, 0.52319972),
        (0.50123859, 0.61331904),
        (0.43364461, 0.68337652),
        (0.57015325, 0.68306005),
    ),
}
"""Where left eye, right eye, nose tip, left and right mouth corner lie in the crop that a network was trained on, in
units of its side. ``arcface_112_v2`` is the five-point set of insightface over 112; ``arcface_128`` is the same one
moved right by 8 pixels, over 128; ``ffhq_512`` that of the FFHQ data set; the others are those of the networks that
name them."""

_TEMPLATE_POINTS = {name: np.array(points, np.float64) for name, points in TEMPLATES.items()}


def picture_from_crop(points5: F32, template: str, side: int) -> F64:
    """Say which crop shows a face the way a network knows it.

    The similarity with the least squared error in the crop, as the networks' makers fit it: the least error in the
    picture would make the crop some per cent smaller on faces unlike the template. Crop and picture count from the
    centre of their first pixel, as the makers and ``engines.contract.Device`` do, so that the templates mean what they
    meant in training.

    Args:
        points5: (5, 2) in a picture, origin at the corner of its first pixel.
        template: in ``TEMPLATES``.
        side: width and height of the crop in pixels.

    Returns:
        (2, 3) float64, for ``Device.crop``.
    """
    crop_from_picture = geometry.similarity(np.asarray(points5, np.float64) - 0.5, _TEMPLATE_POINTS[template] * side)
    return geometry.invert(crop_from_picture)
