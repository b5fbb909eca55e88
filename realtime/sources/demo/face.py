"""Blinks, speech, smiles and brows, painted into the frontal head picture before it is turned; knows no angles.

Each part has a small rectangle and looks its pixels up again at moved places (``cv2.remap``). Where a lid or lip slides
over something, the lookup jumps along a moving edge; what shows in between is painted there.
"""

from __future__ import annotations

from typing import Final, NamedTuple, Protocol

import cv2
import numpy as np

from realtime.sources.demo.motion import Pose
from realtime.types import F32, U8


class Place(NamedTuple):
    """Where the head picture lies in the photo.

    Attributes:
        x: column of its first column in the scaled photo.
        y: row likewise.
        scale: pixels of the head picture in one of the photo.
    """

    x: int
    y: int
    scale: float

    def points(self, photo_px: F32) -> F32:
        """Take points (..., 2) of the photo (corner origin) to pixels of the head picture (pixel centres)."""
        return np.asarray(photo_px * self.scale - (self.x + 0.5, self.y + 0.5), np.float32)


class Patch:
    """A rectangle of the head picture and where its pixels lie."""

    def __init__(self, place: Place, left: float, top: float, right: float, bottom: float) -> None:
        """Take the rectangle in photo pixels (of any fraction; it is rounded outwards)."""
        (x0, y0), (x1, y1) = place.points(np.array([(left, top), (right, bottom)], np.float32))
        self.area = np.s_[int(np.floor(y0)) : int(np.ceil(y1)) + 1, int(np.floor(x0)) : int(np.ceil(x1)) + 1]
        rows, columns = self.area
        self.y, self.x = np.mgrid[rows, columns].astype(np.float32)
        self.columns = self.x[0]

    def lookup(self, picture: U8, x: F32, y: F32) -> U8:
        """Sample ``picture`` (h, w, 4) at ``x``, ``y``, bilinear, into a fresh array of the size of the patch."""
        return np.asarray(cv2.remap(picture, x, y, cv2.INTER_LINEAR, borderMode=cv2.BORDER_REPLICATE), np.uint8)


def _hill(x: F32, half_width: float | F32) -> F32:
    """1 at 0, falling smoothly to 0 at ``half_width``."""
    return np.asarray(np.clip(1 - (x / half_width) ** 2, 0, 1) ** 2, np.float32)


def _mix(picture: U8, colour: F32, share: F32) -> None:
    """Paint ``colour`` (h, w, 3) or (3,) BGR over ``picture`` (h, w, 4) by ``share`` (h, w) 0..1, in place."""
    picture[..., :3] = picture[..., :3] * (1 - share[..., None]) + colour * share[..., None]


class Feature(Protocol):
    """Something in the face that moves."""

    def act(self, picture: U8, pose: Pose) -> None:
        """Move it in ``picture`` (h, w, 4) uint8, the head seen from the front, in place."""


class Brows:
    """Brows and forehead go up between the rim of the glasses and the brim of the hat, which stay."""

    TOP, BOTTOM, RISE = 134.0, 180.0, 4.5
    """Photo rows of the brim and the rim, and how far the middle between them goes up."""

    def __init__(self, place: Place) -> None:
        self._patch = Patch(place, 176, self.TOP, 350, self.BOTTOM)
        middle = place.points(np.array([263, (self.TOP + self.BOTTOM) / 2 + 6], np.float32))
        side = _hill(self._patch.x - middle[0], 86 * place.scale)
        self._rise = self.RISE * place.scale * side * _hill(self._patch.y - middle[1], 17 * place.scale)

    def act(self, picture: U8, pose: Pose) -> None:
        """Raise them in ``picture`` (h, w, 4), in place."""
        if pose.brow > 0:
            patch = self._patch
            picture[patch.area] = patch.lookup(picture, patch.x, patch.y + pose.brow * self._rise)


class Lid:
    """The upper lid of one eye: the strip of skin over it is drawn down over the eye."""

    STRIP = 7.0
    """Height of that strip in photo pixels: more would draw the rim of the glasses along."""
    SHADOW = 3.0
    """Rows at its lower end that show the shadow of the lid and are left out once it moves."""
    LASHES: Final = np.array((16, 24, 46), np.float32)

    def __init__(self, place: Place, upper: F32, lower: F32) -> None:
        """Take the contours of the eye, (n, 2) photo pixels from left to right."""
        margin = 3
        self._patch = Patch(
            place,
            upper[0, 0] - margin,
            upper[:, 1].min() - self.STRIP - 2,
            upper[-1, 0] + margin,
            lower[:, 1].max() + margin,
        )
        above, below = place.points(upper), place.points(lower)
        columns = self._patch.columns
        self._open = np.interp(columns, above[:, 0], above[:, 1]).astype(np.float32)
        self._way = np.interp(columns, below[:, 0], below[:, 1]).astype(np.float32) - self._open
        self._strip = np.float32(self.STRIP * place.scale)
        self._scale = place.scale

    def act(self, picture: U8, pose: Pose) -> None:
        """Close it in ``picture`` (h, w, 4), in place."""
        if pose.blink <= 0:
            return
        patch = self._patch
        edge = self._open + pose.blink * self._way
        crease = self._open - self._strip
        inside = (patch.y > crease) & (patch.y < edge)
        skin = self._strip - self.SHADOW * self._scale * min(1.0, 3 * pose.blink)
        drawn = crease + (patch.y - crease) * (skin / (edge - crease))
        closed = patch.lookup(picture, patch.x, np.where(inside, drawn, patch.y))
        smooth = cv2.GaussianBlur(closed, (0, 0), 1.6 * self._scale, sigmaY=0.8 * self._scale)
        _mix(closed, smooth[..., :3], pose.blink * inside)
        lashes = np.clip(1.2 - np.abs(patch.y - edge) / self._scale, 0, 1)
        _mix(closed, self.LASHES, 0.75 * pose.blink * lashes * np.clip(self._way / self._scale, 0, 1))
        picture[patch.area] = closed


class Mouth:
    """Lips that part over a dark inside with upper teeth, a jaw that goes down, corners that smile."""

    OPEN = 15.0
    """How far the lower lip goes down at most, in photo pixels: 7 % of the height of the face."""
    LIFT = 0.10
    """How far the upper lip goes up, over that."""
    CHIN = 332.0
    """Photo row of the chin."""
    DARK: Final = np.array((14, 14, 36), np.float32)
    TONGUE: Final = np.array((52, 56, 122), np.float32)
    TEETH: Final = np.array((112, 146, 166), np.float32)

    def __init__(self, place: Place, lips: F32) -> None:
        """Take the line between the closed lips, (n, 2) photo pixels from left to right."""
        self._patch = patch = Patch(place, 186, 246, 350, 347)
        scale = self._scale = place.scale
        seam = place.points(lips)
        self._seam = np.interp(patch.columns, seam[:, 0], seam[:, 1]).astype(np.float32)
        centre, half = seam[:, 0].mean(), (seam[-1, 0] - seam[0, 0]) / 2
        chin = self.CHIN * scale - place.y - self._seam
        down = np.clip((patch.y - self._seam) / chin, 0, 1)
        wide = half * (0.86 + 0.95 * down)
        side = np.clip(1 - ((patch.x - centre) / wide) ** 2, 0, 1) ** (1.35 + 0.3 * down)
        self._drop = (self.OPEN * scale * side * (1 - 0.3 * down)).astype(np.float32)
        lip = np.clip(1 - ((patch.columns - centre) / (half * 0.86)) ** 2, 0, 1)
        fade = _hill(np.minimum(patch.y - self._seam, 0), 26 * scale)
        self._lift = (self.LIFT * self.OPEN * scale * lip * fade).astype(np.float32)
        self._teeth_side = np.clip(1.25 - 1.25 * ((patch.columns - centre) / (half * 0.62)) ** 2, 0, 1)
        self._smile = self._corners(seam, 24 * scale)
        arch = np.polynomial.Polynomial.fit(seam[:, 0], seam[:, 1], 2)(patch.columns)
        self._bow = np.asarray(arch - self._seam, np.float32)
        inner = (patch.columns > seam[0, 0]) & (patch.columns < seam[-1, 0])
        self._inner = np.flatnonzero(inner)[[0, -1]] + (0, 1)

    def _corners(self, seam: F32, reach: float) -> tuple[F32, F32]:
        """Where a full smile pulls the skin, right and down, in pixels."""
        patch, scale = self._patch, self._scale
        pulls = [_hill(np.hypot(patch.x - x, patch.y - y), reach) for x, y in seam[[0, -1]]]
        return 3.2 * scale * (pulls[1] - pulls[0]), -3.6 * scale * (pulls[0] + pulls[1])

    def act(self, picture: U8, pose: Pose) -> None:
        """Speak and smile in ``picture`` (h, w, 4), in place."""
        if pose.mouth <= 0 and pose.smile <= 0:
            return
        patch = self._patch
        x = patch.x - pose.smile * self._smile[0]
        y = patch.y - pose.smile * self._smile[1]
        over_lower = y - pose.mouth * self._drop - self._seam
        under_upper = self._seam - (y + pose.mouth * self._lift)
        y = self._seam + np.where(over_lower > 0, over_lower, np.minimum(-under_upper, 0))
        lips = patch.lookup(picture, x, y)
        if pose.mouth > 0:
            columns = np.s_[:, self._inner[0] : self._inner[1]]
            self._inside(lips[columns], -over_lower[columns], -under_upper[columns], pose.mouth)
        picture[patch.area] = lips

    def _inside(self, lips: U8, to_lower: F32, to_upper: F32, mouth: float) -> None:
        """Paint what is between the lips, by the distance in pixels to each of them."""
        share = np.clip(to_lower + 0.5, 0, 1) * np.clip(to_upper + 0.5, 0, 1) * min(1.0, mouth * 8)
        rows = np.flatnonzero(share.any(axis=1))
        if rows.size == 0:
            return
        band = np.s_[rows[0] : rows[-1] + 1]
        upper, lower = to_upper[band] / self._scale, to_lower[band] / self._scale
        columns = np.s_[self._inner[0] : self._inner[1]]
        below_arch = upper - self._bow[columns] / self._scale  # a row of teeth does not follow the bow of the lip
        teeth = np.clip((4.4 - below_arch) / 1.4, 0, 1) * np.clip(0.35 + 0.3 * upper, 0, 1) * self._teeth_side[columns]
        tongue = np.clip(1 - lower / 6, 0, 1) * 0.6
        colour = self.DARK + (self.TONGUE - self.DARK) * tongue[..., None]
        colour = colour + (self.TEETH - colour) * (0.85 * teeth)[..., None]
        _mix(lips[band], np.asarray(colour, np.float32), share[band])
