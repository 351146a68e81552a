//! Limits, tier verdicts and N*, decided from records alone.
