//! What a definition was when somebody agreed to it.
