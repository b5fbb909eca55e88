"""Makes the derived picture files of the demo from the two photos; run by developers only, never by the program.

Knows where the person is in the portrait (outlines drawn by hand, in photo pixels) and what the scene needs from it;
refuses to know how the scene moves. Run ``python -m realtime.assets.build`` after a change here; the result is the same
on every run. With the path of ``astronaut.png`` (see NOTICE) it makes the sample source too.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Final

import cv2
import numpy as np

from engines.card import load_card
from engines.registry import open_device, open_engine
from realtime.assets import ASSETS, demo_photo, sample_source
from realtime.assets.room import draw_room
from realtime.detect.ssd import SsdDetector
from realtime.landmarks import MeshNet
from realtime.types import F32, U8

CANVAS: Final = (600, 560)
"""(rows, columns) of the layers in photo pixels: the photo (600, 512) and room for the sleeve that it cuts off."""

HEAD: Final = (
    (225, 30), (235, 25), (255, 22), (275, 23), (293, 31), (302, 40), (320, 45), (338, 57), (350, 72), (354, 86),
    (362, 86), (369, 95), (371, 120), (370, 150), (367, 178), (376, 186), (376, 200), (372, 225), (364, 260),
    (362, 280), (352, 300), (335, 308), (328, 312), (318, 320), (304, 328), (290, 333), (271, 336), (252, 335),
    (236, 331), (216, 323), (207, 314), (203, 303), (190, 296), (168, 282), (160, 262), (160, 235), (153, 205),
    (157, 184), (152, 174), (148, 150), (147, 130), (150, 110), (160, 95), (172, 86), (176, 78), (185, 62), (200, 50),
    (218, 42),
)  # fmt: skip
BODY: Final = (
    (212, 280), (325, 280), (332, 318), (345, 328), (375, 347), (420, 365), (460, 375), (490, 388), (499, 400),
    (505, 420), (511, 440), (517, 465), (524, 495), (530, 540), (535, 600), (10, 600), (15, 560), (22, 500), (26, 460),
    (30, 430), (38, 405), (50, 388), (70, 375), (120, 360), (165, 340), (190, 328), (203, 318),
)  # fmt: skip
"""Outlines of the two layers. The head ends at the jaw; the body reaches up behind it as a neck."""

UPPER_LIDS: Final = ((33, 246, 161, 160, 159, 158, 157, 173, 133), (362, 398, 384, 385, 386, 387, 388, 466, 263))
LOWER_LIDS: Final = ((33, 7, 163, 144, 145, 153, 154, 155, 133), (362, 382, 381, 380, 374, 373, 390, 249, 263))
"""Contours of the eyes that are left and right in the picture, from left to right (MediaPipe face mesh)."""

UPPER_LIP: Final = (61, 78, 191, 80, 81, 82, 13, 312, 311, 310, 415, 308, 291)
LOWER_LIP: Final = (61, 78, 95, 88, 178, 87, 14, 317, 402, 318, 324, 308, 291)
"""Inner contour of the lips with the outer corners, from left to right (MediaPipe face mesh)."""


def polygon(points: tuple[tuple[int, int], ...]) -> U8:
    """Fill an outline.

    Args:
        points: corners (x, y) in photo pixels.

    Returns:
        ``CANVAS`` uint8, 255 inside.
    """
    return np.asarray(cv2.fillPoly(np.zeros(CANVAS, np.uint8), [np.array(points, np.int32)], 255), np.uint8)


def fill(picture: U8, known: U8) -> U8:
    """Continue the known pixels smoothly into the unknown ones (push-pull over a pyramid).

    Args:
        picture: (H, W, 3) uint8 BGR.
        known: (H, W) uint8, 255 where the picture counts.

    Returns:
        (H, W, 3) uint8 BGR, equal to ``picture`` where ``known`` is 255.
    """
    weight = (known == 255).astype(np.float32)
    return np.rint(_push_pull(picture * weight[..., None], weight)).clip(0, 255).astype(np.uint8)


def _push_pull(colour: F32, weight: F32) -> F32:
    if min(weight.shape) < 2 or weight.min() > 0:
        return np.asarray(colour / np.maximum(weight, 1e-6)[..., None], np.float32)
    coarse = _push_pull(cv2.pyrDown(colour), cv2.pyrDown(weight))
    up = cv2.pyrUp(coarse, dstsize=weight.shape[::-1])
    return np.asarray(np.where(weight[..., None] > 1e-3, colour / np.maximum(weight, 1e-3)[..., None], up), np.float32)


def matte(picture: U8, outline: U8, band_px: int = 5) -> U8:
    """Refine a hand-drawn outline to the real edge of the person.

    Args:
        picture: ``CANVAS`` uint8 BGR.
        outline: ``CANVAS`` uint8, 255 inside.
        band_px: how far the outline may be wrong.

    Returns:
        ``CANVAS`` uint8 alpha, soft by about a pixel.
    """
    disc = cv2.getStructuringElement(cv2.MORPH_ELLIPSE, (2 * band_px + 1, 2 * band_px + 1))
    labels = np.full(CANVAS, cv2.GC_BGD, np.uint8)
    labels[cv2.dilate(outline, disc) > 0] = cv2.GC_PR_BGD
    labels[outline > 0] = cv2.GC_PR_FGD
    labels[cv2.erode(outline, disc) > 0] = cv2.GC_FGD
    cv2.setRNGSeed(1)
    cv2.grabCut(picture, labels, None, np.zeros((1, 65)), np.zeros((1, 65)), 4, cv2.GC_INIT_WITH_MASK)
    inside = np.where((labels == cv2.GC_FGD) | (labels == cv2.GC_PR_FGD), 255, 0).astype(np.uint8)
    inside[:, 506:] = outline[:, 506:]  # beyond the photo there is nothing to refine to
    inside = cv2.medianBlur(inside, 7)
    return np.asarray(cv2.GaussianBlur(inside, (0, 0), 1.0), np.uint8)


def layers(photo: U8) -> tuple[U8, U8, U8]:
    """Cut the photo into a head and a body whose colours go on a little beyond their edges.

    Args:
        photo: (600, 512, 3) uint8 BGR.

    Returns:
        Head and body, uint8 BGR, and their matte, uint8: alpha of the body, alpha of the head, zero. All on ``CANVAS``
        with three channels.
    """
    grey = cv2.cvtColor(cv2.cvtColor(photo, cv2.COLOR_BGR2GRAY), cv2.COLOR_GRAY2BGR)
    calm = cv2.addWeighted(photo, 0.84, grey, 0.16, 0)  # the print is more colourful than a webcam
    picture = cv2.copyMakeBorder(calm, 0, 0, 0, CANVAS[1] - photo.shape[1], cv2.BORDER_REPLICATE)
    person = matte(picture, cv2.bitwise_or(polygon(HEAD), polygon(BODY)))
    head_region = cv2.GaussianBlur(polygon(HEAD), (0, 0), 1.5)
    head_region[:300] = 255  # above the jaw the matte alone decides
    body_region = cv2.GaussianBlur(polygon(BODY), (0, 0), 1.5)
    body_region[322:] = 255  # below the collar too
    head, body = (cv2.multiply(person, region, scale=1 / 255) for region in (head_region, body_region))
    bare = cv2.bitwise_and(person, cv2.bitwise_not(cv2.dilate(head, np.ones((5, 5), np.uint8))))
    no_alpha = np.zeros(CANVAS, np.uint8)
    known = _core(bare)
    return fill(picture, _core(head)), _neck_up(fill(picture, known), known), np.dstack([body, head, no_alpha])


def _neck_up(body: U8, known: U8) -> U8:
    """Mirror the neck at the jaw, so that real skin shows where the turned head uncovers what it hid.

    Args:
        body: ``CANVAS`` uint8 BGR.
        known: ``CANVAS`` uint8, 255 where it shows the body.

    Returns:
        ``CANVAS`` uint8 BGR.
    """
    left, right = 200, 340
    jaw = (known == 255).argmax(axis=0).astype(np.float32)
    jaw[left:right] = cv2.GaussianBlur(jaw[None, left:right], (0, 0), 2.0)[0] + 1
    y, x = np.mgrid[0 : CANVAS[0], 0 : CANVAS[1]].astype(np.float32)
    hidden = (y < jaw) & (x > left) & (x < right)
    mirrored = cv2.remap(body, x, np.where(hidden, 2 * jaw - y, y), cv2.INTER_LINEAR, borderMode=cv2.BORDER_REFLECT_101)
    return np.asarray(mirrored, np.uint8)


def _core(alpha: U8) -> U8:
    """Pixels that surely show the person alone: (H, W) uint8, 255 or 0."""
    return np.where(cv2.erode(alpha, np.ones((5, 5), np.uint8)) >= 250, 255, 0).astype(np.uint8)


def face_mesh(photo: U8) -> F32:
    """Find the face with the embedded networks.

    Args:
        photo: (H, W, 3) uint8 BGR with one face.

    Returns:
        (468, 3) float32 in photo pixels, z negative towards the camera.
    """
    device = open_device("cpu")
    detector_card, mesh_card = load_card("face_detection_short_range"), load_card("face_landmark")
    detector = SsdDetector(detector_card, open_engine(detector_card), device)
    net = MeshNet(mesh_card, open_engine(mesh_card), device)
    mesh, _ = net.locate(photo, net.crop_of_detection(detector.detect_everywhere(photo)[0]))
    mesh, _ = net.locate(photo, net.crop_of_mesh(mesh))
    return mesh


def depth(mesh: F32, cell_px: int = 4) -> F32:
    """Estimate how far each part of the head stands out towards the camera.

    Near the mesh its own depth counts, elsewhere a paraboloid over the head and hat. Both are smooth, so a turned head
    never folds over itself.

    Args:
        mesh: (468, 3) in photo pixels.
        cell_px: side of a cell of the result in photo pixels.

    Returns:
        (rows, columns) float32 in photo pixels over the plane of the ears, for the centre of each cell of ``CANVAS``.
    """
    rows, columns = CANVAS[0] // cell_px, CANVAS[1] // cell_px
    y, x = ((np.mgrid[0:rows, 0:columns] + 0.5) * cell_px).astype(np.float32)
    ears_z = mesh[[234, 454], 2].mean()
    total, weight = np.zeros_like(x), np.zeros_like(x)
    for px, py, pz in mesh:
        near = np.exp(-((x - px) ** 2 + (y - py) ** 2) / (2 * 8.0**2))
        total += near * (ears_z - pz)
        weight += near
    shell = 122 * np.clip(1 - ((x - 262) / 116) ** 2 - ((y - 180) / 172) ** 2, -0.2, 1)
    return np.asarray(cv2.GaussianBlur((total + 0.4 * shell) / (weight + 0.4), (0, 0), 2.0), np.float32)


def seam(photo: U8, lips: F32, reach_px: int = 7) -> F32:
    """Move the line between the lips from where the network sees it to the dark line in the photo.

    Args:
        photo: (H, W, 3) uint8 BGR.
        lips: (n, 2) photo pixels from left to right.
        reach_px: how far the network may be wrong.

    Returns:
        (m, 2) float32 photo pixels, one for every second column: the darkest way through the rows near ``lips``.
    """
    green = cv2.GaussianBlur(photo[..., 1], (0, 0), 1.0).astype(np.float32)
    columns = np.arange(int(lips[0, 0]) - 1, int(lips[-1, 0]) + 3)
    guess = np.rint(np.interp(columns, lips[:, 0], lips[:, 1])).astype(int)
    steps = np.arange(-reach_px, reach_px + 1)
    cost = np.array([green[row + steps, column] for row, column in zip(guess, columns, strict=True)]) + 2.0 * abs(steps)
    best, came = cost[0], []
    for column in cost[1:]:  # the way may go up or down by one row a column
        ways = np.stack([np.roll(best, 1), best, np.roll(best, -1)])
        ways[0, 0] = ways[2, -1] = np.inf
        came.append(ways.argmin(axis=0) - 1)
        best = column + ways.min(axis=0)
    way = [int(best.argmin())]
    for back in reversed(came):
        way.append(way[-1] + int(back[way[-1]]))
    rows = guess + steps[np.array(way[::-1])] + 0.5
    smooth = cv2.GaussianBlur(rows[None].astype(np.float32), (0, 0), 3.0)[0]
    return np.stack([columns + 0.5, smooth], axis=1)[::2].astype(np.float32)


def read(path: Path | str) -> U8:
    """Read one picture, (H, W, 3) uint8 BGR."""
    return np.asarray(cv2.imread(str(path)), np.uint8)


def write(name: str, picture: U8) -> None:
    """Write one picture into the folder of the assets, in the format of its name."""
    jpeg = (cv2.IMWRITE_JPEG_QUALITY, 93, cv2.IMWRITE_JPEG_SAMPLING_FACTOR, cv2.IMWRITE_JPEG_SAMPLING_FACTOR_444)
    cv2.imwrite(str(ASSETS / name), picture, (cv2.IMWRITE_PNG_COMPRESSION, 9) if name.endswith("png") else jpeg)


def main(astronaut: str | None = None) -> None:
    """Write every derived file into the folder of the assets.

    Args:
        astronaut: path of the portrait that becomes the sample source; ``None`` leaves that file as it is.
    """
    if astronaut:
        write(sample_source().name, read(astronaut))
    photo = read(demo_photo())
    head, body, alpha = layers(photo)
    write("demo_head.jpg", head)
    write("demo_body.jpg", body)
    write("demo_matte.png", alpha)
    write("demo_room.jpg", draw_room())
    mesh = face_mesh(photo)
    np.savez_compressed(
        ASSETS / "demo_shape.npz",
        depth=depth(mesh).astype(np.float16),
        upper_lids=mesh[np.array(UPPER_LIDS), :2],
        lower_lids=mesh[np.array(LOWER_LIDS), :2],
        lips=seam(photo, mesh[np.array((UPPER_LIP, LOWER_LIP)), :2].mean(axis=0)),
    )


if __name__ == "__main__":
    main(*sys.argv[1:])
