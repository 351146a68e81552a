//! Exposition text and GPU read-outs into named samples.
