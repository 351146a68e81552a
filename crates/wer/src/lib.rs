//! Word and character error rates: normalisation, tokens, alignment.
