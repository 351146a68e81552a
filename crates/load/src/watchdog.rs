//! When a silent server has been silent for too long.

use std::time::Duration;

use tapedeck_record::SpeechMap;

/// Speech that must have gone by without text before anything is owed, milliseconds. A speech map marks the
/// odd cough; a server need not put that into words.
const OWED_SPEECH_MS: u32 = 1_000;

/// Watches whether speech has been answered with text.
#[derive(Debug)]
pub(crate) struct ResponseWatchdog<'a> {
    speech: &'a SpeechMap,
}

impl<'a> ResponseWatchdog<'a> {
    pub(crate) const fn new(speech: &'a SpeechMap) -> Self {
        Self { speech }
    }

    /// How far into the call text is owed for the speech after `since`: when a second of it has been spoken.
    /// None if there is not that much left.
    pub(crate) fn owed_from(&self, since: Duration) -> Option<Duration> {
        let since_ms = u32::try_from(since.as_millis()).ok()?;
        let mut missing = OWED_SPEECH_MS;
        let intervals = self.speech.intervals();
        let first = intervals.partition_point(|i| i.end_ms <= since_ms);
        for interval in intervals.get(first..)? {
            let start = interval.start_ms.max(since_ms);
            let length = interval.end_ms.saturating_sub(start);
            if length >= missing {
                return Some(Duration::from_millis(u64::from(start) + u64::from(missing)));
            }
            missing -= length;
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_owed_after_a_second_of_speech() {
        let map = SpeechMap::new(vec![(500, 1_000).into(), (3_000, 3_400).into(), (5_000, 9_000).into()]);
        let watchdog = ResponseWatchdog::new(&map);
        let owed = |ms| watchdog.owed_from(Duration::from_millis(ms)).map(|d| d.as_millis());
        assert_eq!(owed(0), Some(5_100), "500 + 400 + 100 ms");
        assert_eq!(owed(700), Some(5_300));
        assert_eq!(owed(1_000), Some(5_600));
        assert_eq!(owed(6_000), Some(7_000));
        assert_eq!(owed(8_001), None, "less than a second is left");
        assert_eq!(owed(20_000), None);
        assert_eq!(ResponseWatchdog::new(&SpeechMap::default()).owed_from(Duration::ZERO), None);
    }
}
