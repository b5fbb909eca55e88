"""A browser as camera, screen and remote control: WebRTC, WHIP, WHEP and the control page; paints no picture.

This room has the one asyncio thread of the program. What a run shares with it is in ``station``; the rest of the
program imports nothing else from here, and nothing at all where no input or output is on the network.
"""
