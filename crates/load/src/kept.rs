//! Since when the text of a call has begun as it does in the end: a fragment sent to stop the clock is taken back.

/// Follows the text of one call.
#[derive(Debug, Default)]
pub(crate) struct Kept {
    /// First character of the text, in lower case.
    begins: Option<char>,
    /// Arrival of the message since which the text begins so.
    from_ns: Option<u64>,
}

impl Kept {
    /// After a message that arrived then, the whole text reads so.
    pub(crate) fn reads(&mut self, text: &str, at_ns: u64) {
        let begins = text.trim_start().chars().flat_map(char::to_lowercase).next();
        if begins != self.begins {
            self.begins = begins;
            self.from_ns = begins.map(|_| at_ns);
        }
    }

    /// Arrival of that message, nanoseconds from the run's origin; empty where there is no text.
    pub(crate) const fn since_ns(&self) -> Option<u64> {
        self.from_ns
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kept(texts: &[&str]) -> Option<u64> {
        let mut kept = Kept::default();
        for (at, text) in (1..).zip(texts) {
            kept.reads(text, at);
        }
        kept.since_ns()
    }

    #[test]
    fn a_text_that_grows_is_kept_from_its_first_character_on() {
        assert_eq!(kept(&["he", "hello", "Hello there", "Hello then."]), Some(1));
        assert_eq!(kept(&["你", "你好"]), Some(1));
    }

    #[test]
    fn a_fragment_that_is_taken_back_does_not_count() {
        assert_eq!(kept(&["uh", "hello", "hello there"]), Some(2));
        assert_eq!(kept(&[".", "", "hello"]), Some(3));
        assert_eq!(kept(&["uh", ""]), None);
        assert_eq!(kept(&[]), None);
    }
}
