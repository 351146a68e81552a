//! Reports of tiers as run directories hold them: those of today, and those of schema 1.

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use tapedeck_record::CallFigure;

use crate::report::{Summary, TierReport};

impl Serialize for TierReport {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        Self::serialize(self, serializer)
    }
}

impl<'de> Deserialize<'de> for TierReport {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        /// Both schemas at once: what one does not have stays empty.
        #[derive(Deserialize)]
        struct Recorded {
            #[serde(flatten, deserialize_with = "TierReport::deserialize")]
            report: TierReport,
            #[serde(flatten)]
            first: SchemaOne,
        }
        let Recorded { mut report, first } = Recorded::deserialize(deserializer)?;
        for (figure, summary) in first.summaries(report.final_basis.figure()) {
            report.summaries.entry(figure).or_insert(summary);
        }
        Ok(report)
    }
}

/// The summaries of schema 1: a key for each, some named otherwise than the figure.
#[derive(Deserialize)]
struct SchemaOne {
    ttft_wire: Option<Summary>,
    ttft_speech: Option<Summary>,
    ttft_window: Option<Summary>,
    rtf: Option<Summary>,
    final_latency: Option<Summary>,
    pace: Option<Summary>,
    connect: Option<Summary>,
    lag_max: Option<Summary>,
    stall_max: Option<Summary>,
    blocked_max_ms: Option<Summary>,
    rtt_ms: Option<Summary>,
    revisions: Option<Summary>,
}

impl SchemaOne {
    fn summaries(self, final_figure: CallFigure) -> impl Iterator<Item = (CallFigure, Summary)> {
        [
            (CallFigure::TtftWireS, self.ttft_wire),
            (CallFigure::TtftSpeechS, self.ttft_speech),
            (CallFigure::TtftWindowS, self.ttft_window),
            (CallFigure::Rtf, self.rtf),
            (final_figure, self.final_latency),
            (CallFigure::Pace, self.pace),
            (CallFigure::ConnectS, self.connect),
            (CallFigure::LagMaxS, self.lag_max),
            (CallFigure::StallMaxS, self.stall_max),
            (CallFigure::BlockedMaxMs, self.blocked_max_ms),
            (CallFigure::RttP50Ms, self.rtt_ms),
            (CallFigure::Revisions, self.revisions),
        ]
        .into_iter()
        .filter_map(|(figure, summary)| Some((figure, summary?)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A tier as commit 13300b5 wrote it.
    const FIRST: &str = include_str!("../tests/recorded/tier-schema-1.json");

    #[test]
    fn a_report_of_schema_1_is_read() {
        let report: TierReport = serde_json::from_str(FIRST).unwrap();
        let raw: serde_json::Value = serde_json::from_str(FIRST).unwrap();
        let p95 = |key: &str| raw[key]["p95"]["value"].as_f64();
        for (figure, key) in [
            (CallFigure::TtftWindowS, "ttft_window"),
            (CallFigure::Rtf, "rtf"),
            (report.final_basis.figure(), "final_latency"),
            (CallFigure::LagMaxS, "lag_max"),
            (CallFigure::RttP50Ms, "rtt_ms"),
        ] {
            assert_eq!(report.summary(figure).map(|s| s.p95.value), p95(key), "{key}");
        }
        assert!(p95("ttft").is_some() && p95("rtf").is_some());
        assert_eq!(report.ttft().map(|s| s.p95.value), p95("ttft"));
        // What is read is written as today, and read again as the same.
        let today = serde_json::to_string(&report).unwrap();
        assert_eq!(serde_json::from_str::<TierReport>(&today).unwrap(), report);
        assert!(today.contains(r#""summaries":{"connect_s""#), "{today}");
    }
}
