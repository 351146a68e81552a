//! The examples do what they say.

#[cfg(test)]
#[expect(dead_code, reason = "an example's main is not called by a test")]
#[path = "../../examples/drive.rs"]
mod drive;

#[cfg(test)]
mod tests {
    use tapedeck_record::Outcome;

    use super::drive::drive;

    #[tokio::test(start_paused = true)]
    async fn the_load_of_ones_own_is_played_and_scored() {
        let records = drive().await.unwrap();
        let counted: Vec<_> = records.iter().filter(|r| r.counted).collect();
        assert_eq!(counted.len(), 2 * 3);
        assert!(counted.iter().all(|r| r.outcome.outcome == Outcome::Ok));
        for call in counted {
            // A second is heard after its last chunk, speech begins at half a second, the answer takes 80 ms.
            let ttft_s = call.ttft_speech_s.unwrap();
            assert!((ttft_s - 0.58).abs() < 0.005, "{ttft_s}");
        }
    }
}
