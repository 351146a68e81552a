//! Call recordings in, 16 kHz s16 out: WAV in all its forms, channels, resampling, speech map.
