"""The machine room: arrays in, arrays out. Knows devices and models; never faces, frames or threads."""
