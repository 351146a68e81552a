//! FLAC and MP3, through symphonia.
