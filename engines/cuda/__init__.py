"""The NVIDIA room: pictures, crops and networks on a GPU; the only part of the program that names CUDA."""
