"""The stage: frames, faces, threads, pictures in and out. Never names CUDA."""
