"""Who is who: whom the settings name, who is in view, and who of them gets which face; knows no crop and no swapper."""
