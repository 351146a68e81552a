//! The run directory: append, checkpoint, resume, atomic writes.
