"""FFmpeg's pictures and errors in our words, for files and streams alike; opens nothing and keeps no time."""

from __future__ import annotations

import av
import av.container
import av.error
import cv2
import numpy as np
from av.stream import Disposition
from av.video.stream import VideoStream

from realtime.types import U8

_TURNS = {90: cv2.ROTATE_90_COUNTERCLOCKWISE, -90: cv2.ROTATE_90_CLOCKWISE, 180: cv2.ROTATE_180, -180: cv2.ROTATE_180}
# VideoFrame.rotation says by how much, counter-clockwise, a viewer has to turn the stored picture.

_COLORSPACE_UNSPECIFIED = 2  # AVCOL_SPC_UNSPECIFIED
_HD_LINES = 720


def to_bgr(frame: av.VideoFrame) -> U8:
    """Convert a decoded picture to what a viewer would show.

    The colour matrix is the one that the stream names; where it names none, BT.709 from 720 lines on and BT.601 below,
    as players assume (FFmpeg alone would take BT.601 always: faces of HD clips turn reddish). The turn that a phone
    notes beside the picture is applied.

    Args:
        frame: any pixel format and size, also odd ones.

    Returns:
        (H, W, 3) uint8 BGR, C-contiguous, owned by the caller.
    """
    unnamed_hd = frame.colorspace == _COLORSPACE_UNSPECIFIED and frame.height >= _HD_LINES
    bgr = frame.reformat(format="bgr24", src_colorspace="ITU709" if unnamed_hd else None).to_ndarray()
    turn = _TURNS.get(round(frame.rotation / 90) * 90)
    return np.ascontiguousarray(bgr if turn is None else cv2.rotate(bgr, turn), np.uint8)


def video_stream(container: av.container.InputContainer) -> VideoStream | None:
    """Give the first stream of moving pictures; the cover of a song is none."""
    streams = container.streams.video
    return next((s for s in streams if not s.disposition & Disposition.attached_pic), None)


def reason(error: av.error.FFmpegError) -> str:
    """Say why FFmpeg refused, without the file's name, which our own message carries."""
    return str(error.strerror or error).lower()
