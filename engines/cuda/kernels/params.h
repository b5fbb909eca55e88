// The numbers that change from frame to frame, as the kernels read them; blocks.py writes the same layout.
//
// They lie in a small buffer of the device and not in a launch's arguments, because a captured CUDA graph keeps those.
#pragma once

struct CropBlock {          // 12 x 4 bytes
    float picture_from_crop[6];  // (2, 3), between centres of pixels, of the whole crop
    int width, height;      // of the picture
    int pitch;              // bytes from row to row of the picture
    int spare[3];
};

struct PasteBlock {         // 24 x 4 bytes
    float patch_from_picture[6];  // (2, 3), between centres of pixels, of the patch at `level`
    float gain[3], offset[3];     // blue, green, red; grey levels
    int left, top, right, bottom; // rectangle of the picture that is painted, the last two just outside
    int pitch;              // bytes from row to row of the picture
    int level;              // how many times the patch is halved before it is sampled, at most 9
    float least_range;      // grey levels: an output with less between its darkest and brightest value is not painted
    float least_deviation;  // the same for the standard deviation of its most varied channel; 0 for none
    int spare[4];
};

struct Measured {           // 16 x 4 bytes
    float before_mean[3], before_deviation[3];  // blue, green, red, grey levels
    float after_mean[3], after_deviation[3];
    float low, high;        // of the output before gain, grey levels; NaN both when a value is not finite
    int painted;            // 1 when the paste kernel painted, 0 when it refused
    int spare;
};

struct MeshBlock {          // 8 x 4 bytes
    int left, top, width, height; // rectangle of the picture that the mesh may cover; mesh points count from its corner
    int pitch;              // bytes from row to row of the picture
    int triangles;          // how many
    int texture_side, opacity_side;
};

struct MarkBlock {          // 8 x 4 bytes
    int width, height, pitch; // of the picture
    int columns, rows;      // of cells
    int spare[3];
};
